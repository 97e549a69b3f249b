"""One run in this worker's hands: driven as far as it gets, then ended, parked or given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, assert_never

from pydantic import JsonValue

from hand_rolled.effects import describe
from hand_rolled.handler import Finished, HandedOver, Handler, Parked
from hand_rolled.lease import Lease, LeaseLost
from hand_rolled.lifecycle import Ending
from two_workers.errors import BudgetExceeded, ReplayMismatch, StepFailed

log = logging.getLogger("hand_rolled.worker")

Driving = Coroutine[Any, Any, Finished | Parked | HandedOver]


@dataclass
class Running:
    """A run that a shift owns. Cancelling `drive` interrupts its steps, not its ending."""

    lease: Lease
    handler: Handler
    payload: JsonValue
    drive: asyncio.Task[Finished | Parked | HandedOver] | None = None
    busy: bool = True
    """Whether it takes one of its worker's places."""

    def interrupt(self) -> None:
        """Raise CancelledError in the steps under way; uninterruptible ones end first."""
        if self.drive is not None:
            self.drive.cancel()

    def abort(self) -> None:
        """Interrupt all steps, the uninterruptible ones too."""
        self.interrupt()
        self.handler.effects.abort()

    async def carry_out(self) -> None:
        """Until our ownership has ended. Raises `LeaseLost` when another's began."""
        while not await self._once():
            continue

    async def _once(self) -> bool:
        """Drive the run once, and end our ownership accordingly. False: drive it again."""
        ending = Ending(self.handler.journal)
        try:
            outcome = await self._driven(self.handler.drive(self.payload))
        except asyncio.CancelledError:
            self.lease.check()
            outcome = HandedOver()
        except LeaseLost:
            raise
        except ReplayMismatch as mismatch:
            log.warning("%s: %s", self.lease.owner, mismatch)
            return await ending.leave("pending", mismatch=str(mismatch)) is not None
        except Exception as error:  # whatever the agent raises fails the run
            if not isinstance(error, StepFailed | BudgetExceeded):
                log.info("%s failed", self.lease.run_id, exc_info=error)
            await ending.finish(failure=describe(error))
            return True
        finally:
            self.drive = None
        return await _end(ending, outcome)

    async def _driven(self, work: Driving) -> Finished | Parked | HandedOver:
        """In a task of its own: to cancel that one interrupts the steps, not what comes after."""
        self.drive = asyncio.create_task(work)
        return await self.drive


async def _end(ending: Ending, outcome: Finished | Parked | HandedOver) -> bool:
    """False if the run is still ours: a signal came that it had not seen when it parked."""
    match outcome:
        case Finished(result=result):
            try:
                await ending.finish(result=result)
            except ValueError as error:  # NaN, say
                await ending.finish(failure=f"its result is not JSON: {error}")
            return True
        case Parked(wait=wait, signals_seen=seen):
            target = "scheduled" if seen is None else "waiting"
            return await ending.leave(target, wait=wait, signals_seen=seen) is not None
        case HandedOver():
            return await ending.leave("pending") is not None
        case _:
            assert_never(outcome)
