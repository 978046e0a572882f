"""The content of an HTML table."""

from html.parser import HTMLParser


class Cells(HTMLParser):
    """The text of the cells of a table, row by row, and the tags that it is made of."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.text = [], set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data
