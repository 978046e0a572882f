"""The XML file in which Mulan lists the labels of an ARFF file."""

from __future__ import annotations

from xml.parsers import expat

from nearlabel.common.messages import first_twice, shown
from nearlabel.datasets.text_lines import DataError, TextFile


def read_labels(file: TextFile) -> list[str]:
    """Names of the labels in a Mulan XML file, of all levels if they form a hierarchy.

    Only elements and attributes are read: a document type, and with it every entity and every
    reference to another file, raises an error.
    """
    names: list[str] = []
    parser = expat.ParserCreate("utf-8", " ")  # lines are decoded already

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if tag == "label":
            if "name" not in attributes:
                raise file.error("a <label> without a name", parser.CurrentLineNumber)
            names.append(attributes["name"])
        elif tag != "labels":
            raise file.error(f"expected <labels> or <label>; got <{tag[:40]}>")

    def refuse(*_: object) -> None:
        raise file.error("a document type is not allowed in a label file")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        for line in file.lines():
            parser.Parse(line.encode())
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise file.error(
            f"this is not an XML list of labels: {expat.ErrorString(error.code)}",
            error.lineno,
        ) from None
    twice = first_twice(names)
    if twice is not None:
        raise DataError(file.name, None, f"the label {shown(twice)} is listed twice")
    return names


def labels_xml(labels: list[str]) -> str:
    """The file that lists labels."""
    from xml.sax.saxutils import quoteattr

    for name in labels:
        if any((mark < " " and mark not in "\t\n\r") or mark in "\ufffe\uffff" for mark in name):
            raise ValueError(f"the label {shown(name)} cannot be written: XML does not allow it")
    start = '<?xml version="1.0" encoding="utf-8"?>\n'
    start += '<labels xmlns="http://mulan.sourceforge.net/labels">\n'
    lines = (f"<label name={quoteattr(name)}></label>\n" for name in labels)
    return start + "".join(lines) + "</labels>\n"
