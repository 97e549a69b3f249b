"""An agent module that cannot be replayed: it reads the clock when it is imported."""

import datetime

from tests.temporal_version.steps import Script

IMPORTED_AT = datetime.datetime.now(datetime.UTC)


async def harmless(script: Script) -> str:
    return "done"
