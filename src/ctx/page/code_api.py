"""The code of a project through the HTTP API."""

from typing import Annotated

import msgspec

from ctx.operations import code_file, code_folder
from ctx.operations.code_file import CodeFile
from ctx.operations.code_folder import CodeFolder
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class FolderQuery(PlaceQuery, frozen=True):
    path: str = ""
    """A folder; empty for the root of the project."""
    first: _Number = 0
    limit: _Limit = 50


class FileQuery(PlaceQuery, frozen=True):
    path: str = ""
    line: _Number = 1
    """The first line of the text."""
    limit: _Limit = 400
    """Lines of the text."""


def list_code_files(request: PageRequest, query: FolderQuery) -> CodeFolder:
    """List a folder of the code, with what memory knows about its files."""
    with request.reading() as memory:
        return code_folder.code_folder(memory, query.path, query.first, query.limit)


def show_code_file(request: PageRequest, query: FileQuery) -> CodeFile:
    """Show a file of the code: items with callers, imports, text, and what memory knows."""
    with request.reading() as memory:
        return code_file.code_file(memory, query.path, query.line, query.limit)


ENDPOINTS = [
    ApiEndpoint("GET", "/code/files", list_code_files),
    ApiEndpoint("GET", "/code/file", show_code_file),
]
