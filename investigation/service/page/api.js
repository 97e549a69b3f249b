// Requests to the service. Without a valid key the service answers 401; then the person is asked
// for one, and the request is sent again.

const STORED = "two-workers-key";
const RETRY = 1500; // milliseconds between two tries to follow a run

export class ServiceError extends Error {}

export async function request(method, path, body) {
  const response = await send(method, path, { body });
  const text = await response.text();
  const answer = text && response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : null;
  if (!response.ok) throw new ServiceError(answer?.detail ?? `${response.status} ${response.statusText}`);
  return answer;
}

// The events of a run, until it ends or `signal` is aborted; reconnects when the connection is
// lost. Not EventSource, because that cannot send a key.
export async function follow(runId, signal, { onEvent, onLost }) {
  while (!signal.aborted) {
    try {
      const response = await send("GET", `api/runs/${encodeURIComponent(runId)}/events`, { signal });
      if (response.status === 404) throw new ServiceError((await response.json()).detail);
      if (response.ok && (await read(response.body, onEvent))) return;
      onLost(response.ok ? "the connection was closed" : `${response.status} ${response.statusText}`);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ServiceError) throw error;
      onLost(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

async function read(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    const blocks = (pending + value).split("\n\n");
    pending = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event.data === undefined) continue; // a comment that keeps the connection open
      onEvent(event.name, event.data);
      if (event.name === "end") return true;
    }
  }
}

function parse(block) {
  const event = { name: "message" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event.name = line.slice(7);
    if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
  }
  return event;
}

async function send(method, path, { body, signal }) {
  for (let complaint = ""; ; complaint = "The service does not know this key.") {
    const headers = {};
    const key = sessionStorage.getItem(STORED);
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method === "POST" && path === "api/runs") headers["Idempotency-Key"] = body.key;
    const content = body?.key ? { ...body, key: undefined } : body;
    const response = await fetch(path, { method, headers, signal, body: content && JSON.stringify(content) });
    if (response.status !== 401) return response;
    sessionStorage.setItem(STORED, await askForKey(key ? complaint : ""));
  }
}

let asking = null; // several requests may meet a 401 at once: one dialog for all

function askForKey(complaint) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    const input = document.getElementById("key");
    document.getElementById("key-error").textContent = complaint;
    input.value = "";
    dialog.addEventListener("cancel", (event) => event.preventDefault(), { once: true });
    dialog.addEventListener("close", () => { asking = null; resolve(input.value.trim()); }, { once: true });
    dialog.showModal();
  });
  return asking;
}
