"""Reads Liberty, the format in which cell libraries come."""

import re
from dataclasses import dataclass, field

__all__ = ["Group", "parse", "numbers"]

_COMMENT = re.compile(r"/\*.*?\*/|\\\r?\n", re.S)
_STATEMENT = re.compile(r"""\s*(?:
    (?P<close>\})
  | (?P<name>[\w.\[\]]+)\s*:\s*(?P<value>"[^"]*"|[^;{}\n]*)\s*;?
  | (?P<call>\w+)\s*\((?P<arguments>(?:"[^"]*"|[^()"])*)\)\s*(?P<open>\{)?\s*;?
  | ;
  )""", re.X)


@dataclass
class Group:
    """One group of a Liberty file, ``kind (arguments) { … }``.

    Parameters
    ----------
    kind : str
        ``library``, ``cell``, ``pin``, ``timing``, …
    arguments : str
        What stands in the parentheses, without quotes.
    values : dict of str to str
        Attributes, without quotes; of ``values ("…", "…")`` what stands in the parentheses, with them.
    groups : list of Group
    """

    kind: str
    arguments: str
    values: dict = field(default_factory=dict)
    groups: list = field(default_factory=list)

    def all(self, kind):
        """The groups of one kind directly inside this one."""
        return [group for group in self.groups if group.kind == kind]


def parse(text, name="Liberty"):
    """The outermost group of a Liberty file.

    Parameters
    ----------
    text : str
    name : str
        What the text is called in messages.

    Raises
    ------
    ValueError
        The text is not Liberty; the message names the line.
    """
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    outer = Group("", "")
    stack, place, end = [outer], 0, len(text.rstrip())
    while place < end:
        match = _STATEMENT.match(text, place)
        if not match or match["close"] and len(stack) == 1:
            raise ValueError(f"{name} is not Liberty: line {text.count(chr(10), 0, place) + 1} cannot be read")
        if match["close"]:
            stack.pop()
        elif match["name"]:
            stack[-1].values[match["name"]] = match["value"].strip().strip('"').strip()
        elif match["open"]:
            group = Group(match["call"], match["arguments"].replace('"', "").strip())
            stack[-1].groups.append(group)
            stack.append(group)
        elif match["call"]:
            stack[-1].values[match["call"]] = match["arguments"]
        place = match.end()
    if len(stack) > 1 or [group.kind for group in outer.groups] != ["library"]:
        raise ValueError(f"{name} is not Liberty: it must hold one complete group 'library'")
    return outer.groups[0]


def numbers(text):
    """Rows of numbers in what stands between the parentheses of ``values`` or ``index_1``."""
    rows = re.findall(r'"([^"]*)"', text) or [text]
    return [[float(word) for word in re.split(r"[,\s]+", row.strip(", \t\n"))] for row in rows]
