"""Reads Cookie headers, a JSON list on standard input, as frameworks in Python do: the value of "id" in each, or null."""

import json
import sys
from http.cookies import SimpleCookie


def http_cookies(header):
    morsel = SimpleCookie(header).get("id")
    return morsel and morsel.value


readers = {"http.cookies": http_cookies}
missing = []

try:
    from django.http import parse_cookie

    readers["Django"] = lambda header: parse_cookie(header).get("id")
except ImportError:
    missing.append("Django")

try:
    from werkzeug.http import parse_cookie as parse_werkzeug

    readers["Werkzeug, first"] = lambda header: parse_werkzeug(header).get("id")
    readers["Werkzeug, last"] = lambda header: ([None] + parse_werkzeug(header).getlist("id"))[-1]
except ImportError:
    missing.append("Werkzeug")


def read(reader, header):
    try:
        return reader(header)
    except Exception:
        # The request fails.
        return None


headers = json.load(sys.stdin)
values = {name: [read(reader, header) for header in headers] for name, reader in readers.items()}
json.dump({"values": values, "missing": missing}, sys.stdout)
