"""Import and export of tags: tables, folders, text files, and the metadata of photo tools."""
