"""What lets the reader's worker (`comparison.story.worker`) be started like any other arm.

- `settings`  what a process is told, and its connections
- `drive`     an app's agent, stepped for an engine that has nothing but a journal
- `worker`    slots of the reader's worker, with an app's resources
- `engine`    the client: `Engine` as far as the table has answers
- `plugin`    the parts as a plugin
"""
