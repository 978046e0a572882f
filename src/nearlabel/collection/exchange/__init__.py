"""Tags in and out: tables, folders, texts beside pictures, and what photo tools keep."""
