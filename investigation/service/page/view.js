// Small helpers to build the page. Text always goes in as text, never as HTML.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text; // else screen readers read it again
}

export function announce(text) {
  setText(document.getElementById("announcement"), text);
}

// A button that does something on the service: disabled meanwhile, its error shown beside it.
export function action(label, work, attributes = {}) {
  const error = h("span", { class: "error", role: "alert" });
  const button = h("button", { type: "button", ...attributes }, label);
  button.addEventListener("click", async () => {
    error.textContent = "";
    button.disabled = true;
    try {
      await work();
    } catch (failure) {
      error.textContent = failure.message;
    } finally {
      button.disabled = false;
    }
  });
  return { button, error };
}

export function dollars(micro) {
  return `$${(micro / 1e6).toFixed(4)}`;
}

export function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

export function ago(moment, now) {
  const passed = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  if (passed < 90) return `${passed} s ago`;
  return passed < 5400 ? `${Math.round(passed / 60)} min ago` : new Date(moment).toLocaleString();
}

// The fence in the engine's own word: a table's generation, or the attempt of a Temporal activity.
export function fenceName(fence) {
  if (!fence) return "";
  return fence.length === 1 ? `generation ${fence[0]}` : `attempt ${fence.at(-1)}`;
}

export function badge(state) {
  return h("span", { class: `badge ${state}` }, state);
}

// A form field for each property of the payload's JSON Schema.
export function fields(schema) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const numeric = property.type === "integer" || property.type === "number";
    const simple = numeric || property.type === "string";
    const attributes = { name, required: required.has(name), "data-type": simple ? property.type : "json" };
    const start = property.default === undefined ? "" : simple ? String(property.default) : JSON.stringify(property.default);
    const control = simple
      ? h("input", { ...attributes, value: start, ...(numeric ? { type: "number", step: property.type === "integer" ? 1 : "any", min: property.minimum, max: property.maximum } : { type: "text", maxlength: property.maxLength }) })
      : h("textarea", { ...attributes, rows: 3, placeholder: "JSON" }, start);
    const hint = property.description ? h("small", {}, property.description) : null;
    return h("label", {}, `${property.title ?? name}${required.has(name) ? "" : " (optional)"}`, control, hint);
  });
}

export function payloadOf(form) {
  const payload = {};
  for (const control of form.querySelectorAll("[data-type]")) {
    const text = control.value.trim();
    if (!text && !control.required) continue;
    payload[control.name] = control.dataset.type === "string" ? text : JSON.parse(text);
  }
  return payload;
}
