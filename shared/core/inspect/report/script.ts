/** What the page does beyond showing: it copies a command, filters its rows, and loads itself again as it was left. */

/**
 * One text, so that the page's policy can name it by its hash. It reads its own document only. Without it the page shows
 * the same, and a tap on a command selects it.
 *
 * The filter is kept in the fragment of the address: it can be shared, a reload keeps it, and no server is told.
 */
export const SCRIPT = `(() => {
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const said = document.querySelector(".said");
const copy = async (box, button) => {
  const code = box.firstElementChild, text = code.textContent;
  let isCopied = true;
  try { await navigator.clipboard.writeText(text); }
  catch {
    getSelection().selectAllChildren(code);
    isCopied = document.execCommand("copy");
  }
  for (const other of all(".cmd button")) other.textContent = "Copy";
  button.textContent = isCopied ? "Copied" : "Selected";
  said.textContent = (isCopied ? "Copied: " : "Selected, not copied: ") + text;
};
for (const box of all(".cmd")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.onclick = () => copy(box, button);
  box.append(button);
}
const seconds = Number(document.body.dataset.refresh);
let timer;
const reloadLater = () => {
  clearTimeout(timer);
  if (seconds > 0) timer = setTimeout(() => { history.replaceState({ ...history.state, focus: focusKey(document.activeElement) }, ""); location.reload(); }, seconds * 1000);
};
const focusKey = (node) => [node.tagName, node.closest("li,tr,section,header")?.firstElementChild, node.previousElementSibling, node].map((one) => (one?.textContent ?? one ?? "").replace(/\\d+/g, "")).join();
reloadLater();
const keyOf = (details) => (details.closest("li,tr,section").firstElementChild.textContent + details.firstElementChild.textContent).replace(/(?<![:\\d])\\d+(?![:\\d])/g, "");
addEventListener("click", ({ target }) => {
  const details = target.closest("summary")?.parentNode;
  if (details) history.replaceState({ ...history.state, [keyOf(details)]: !details.open }, "");
});
if (history.state) for (const details of all("details")) details.open = history.state[keyOf(details)] ?? details.open;
queueMicrotask(() => all("a,button,summary,input,select").find((node) => focusKey(node) === history.state?.focus)?.focus({ preventScroll: true }));
const filter = document.querySelector(".filter");
if (!filter) return;
const [input, select, output] = filter.children;
const stateOf = (from) => from.querySelector(".state,.mark,.verdict")?.classList[1];
const groups = all(".pods>details").map((node) => ({ node, isOpen: node.open }));
const rows = all(".sets tbody tr,.pods tbody tr").map((node) => {
  const group = node.closest("details"), set = node.closest(".set");
  const text = (node.textContent + " " + (group ? group.firstElementChild.textContent : "")).toLowerCase();
  return { node, group, set, text, state: stateOf(node) };
});
const sections = all(".set");
const sets = (sections.length > 1 ? sections : []).map((node) => {
  const row = document.querySelector('.sets a[href="#' + node.id + '"]')?.closest("tr");
  return { node, row, text: node.querySelector("h2").textContent.toLowerCase(), state: stateOf(node) };
});
const apply = () => {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean), state = select.value;
  const isOn = words.length > 0 || state !== "";
  const isHit = (one) => words.every((word) => one.text.includes(word)) && (state === "" || state === one.state);
  const hits = new Set(rows.filter(isHit).map(({ node }) => node));
  const whole = new Set(sets.filter((set) => isHit(set) || hits.has(set.row)).map(({ node }) => node));
  const kept = new Set(whole);
  let shown = 0;
  for (const { node, group, set } of rows) {
    node.hidden = !(hits.has(node) || whole.has(set));
    if (!node.hidden) { shown++; kept.add(group).add(set); }
  }
  for (const { node, isOpen } of groups) {
    node.hidden = isOn && !kept.has(node);
    node.open = isOn ? kept.has(node) : isOpen;
  }
  for (const { node } of sets) node.hidden = isOn && !kept.has(node);
  output.textContent = isOn ? shown + " of " + rows.length + " shown" : "";
};
const write = () => {
  const query = new URLSearchParams();
  if (input.value) query.set("filter", input.value);
  if (select.value) query.set("state", select.value);
  history.replaceState(history.state, "", String(query) ? "#" + query : location.pathname + location.search);
  for (const link of all(".top a")) link.hash = query;
};
const read = () => {
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.has("filter") && !query.has("state")) return output.textContent === "" || write();
  input.value = query.get("filter") ?? "";
  select.value = query.get("state") ?? "";
  if (select.selectedIndex < 0) select.value = "";
  apply();
  write();
};
filter.hidden = false;
filter.onfocusin = reloadLater;
filter.oninput = () => { reloadLater(); apply(); write(); };
addEventListener("hashchange", read);
read();
})();`;
