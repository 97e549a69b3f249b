"""What the workers of a comparison investigate: questions about the incident of the repository."""

QUESTIONS = (
    "why do checkouts fail?",
    "what happened first?",
    "which service is slow, and since when?",
    "are there timeouts, and between whom?",
    "why do payments fail?",
    "what was restarted or deployed before the trouble?",
    "is the database overloaded?",
    "which errors repeat most often?",
    "what changed shortly before the errors began?",
    "who retries, and does it make things worse?",
    "are connections refused or exhausted?",
    "does a host run out of memory or disk?",
    "when did the service recover?",
    "which customers or orders were hit?",
)
