"""Review a folder of documents, all at once, and wait for a person before it ends.

    two-workers worker --engine temporal --app examples.review_documents:APP

The agent is the part between the two lines below; after it come its effects.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from two_workers import (
    App,
    Call,
    Effect,
    PermanentFailure,
    Sleep,
    Step,
    StepFailed,
    WaitForSignal,
    do,
    do_all,
)

# --------------------------------------------------------------------------------------------


class Folder(BaseModel):
    path: str
    settle: float = Field(default=0.0, description="seconds to leave authors before approval")


class Document(BaseModel):
    todos: list[str]
    links: list[str]


class ListDocuments(Step[list[str]]):
    folder: str


class ReadDocument(Step[Document]):
    path: str


class LinkExists(Step[bool]):
    path: str
    link: str


async def broken_links(path: str, document: Document) -> list[str]:  # a sub-agent
    exist = await do_all([LinkExists(path=path, link=link) for link in document.links])
    return [link for link, there in zip(document.links, exist, strict=True) if not there]


async def review(folder: Folder) -> dict[str, Any]:
    paths = await do(ListDocuments(folder=folder.path))
    read = await do_all([ReadDocument(path=path) for path in paths], keep_failures=True)
    remarks: dict[str, list[str]] = {}
    for path, document in zip(paths, read, strict=True):
        if isinstance(document, StepFailed):  # failed for good: say so, and review the others
            remarks[path] = [f"cannot be read: {document.message}"]
        else:
            broken = await broken_links(path, document)
            remarks[path] = document.todos + [f"broken link: {link}" for link in broken]
    await do(Sleep(seconds=folder.settle))
    approval = await do(WaitForSignal(name="approve"))  # holds no worker while it waits
    return {"remarks": remarks, "approval": approval}


# --------------------------------------------------------------------------------------------


async def list_documents(step: ListDocuments, call: Call) -> list[str]:
    files = await asyncio.to_thread(lambda: [p for p in Path(step.folder).iterdir() if p.is_file()])
    return sorted(str(path) for path in files)


async def read_document(step: ReadDocument, call: Call) -> Document:
    try:
        text = await asyncio.to_thread(Path(step.path).read_text, "utf-8")
    except UnicodeDecodeError as error:
        raise PermanentFailure(f"not UTF-8 text ({error.reason})") from error
    todos = [line.strip() for line in text.splitlines() if "TODO" in line]
    return Document(todos=todos, links=re.findall(r"\]\(([^):#]+)\)", text))


async def link_exists(step: LinkExists, call: Call) -> bool:
    return await asyncio.to_thread((Path(step.path).parent / step.link).exists)


APP = App(
    kind="review-documents",
    agent=review,
    effects={
        ListDocuments: Effect(list_documents),
        ReadDocument: Effect(read_document),
        LinkExists: Effect(link_exists),
    },
)
