// Keys, live updates, and copying. Everything here is an addition: the page works without it.

document.documentElement.classList.add("scripted");

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Items that `j` and `k` walk through.
const items = () => $$("[data-item]", $("main"));
const chosen = () => $("[data-item].chosen", $("main"));

function choose(step) {
  const all = items();
  if (!all.length) return;
  const index = all.indexOf(chosen());
  const next = all[Math.max(0, Math.min(all.length - 1, index < 0 ? 0 : index + step))];
  chosen()?.classList.remove("chosen");
  next.classList.add("chosen");
  next.scrollIntoView({ block: "nearest" });
  $("a, button, summary", next)?.focus({ preventScroll: true });
}

async function copy() {
  const from = chosen() ?? $("[data-copy]");
  const text = from?.closest("[data-copy]")?.dataset.copy ?? $("[data-copy]", from ?? document)?.dataset.copy;
  if (text === undefined) return;
  await navigator.clipboard.writeText(text);
  tell("Copied.");
}

export function tell(text) {
  const line = document.createElement("div");
  line.className = "message";
  line.textContent = text;
  $(".messages").append(line);
  setTimeout(() => line.remove(), 4000);
}

const keys = {
  "/": () => ($("#query") ?? $(".top .find input")).focus(),
  "?": () => $("#help").showModal(),
  j: () => choose(1),
  k: () => choose(-1),
  u: () => ($$(".messages [data-undo]").at(-1) ?? $("[data-undo]"))?.click(),
  e: () => ($("[data-edit]", chosen() ?? $("main")) ?? $("[data-edit]"))?.click(),
  y: copy,
  Enter: () => $("a", chosen() ?? document.createElement("i"))?.click(),
};

let prefix = "";
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const pressed = event.key;
  if (prefix === "g") {
    prefix = "";
    const target = $(`.top nav [data-key="${CSS.escape(pressed)}"]`);
    if (target) {
      event.preventDefault();
      target.click();
    }
  } else if (pressed === "g") {
    prefix = "g";
    setTimeout(() => (prefix = ""), 1500);
  } else if (Object.hasOwn(keys, pressed)) {
    event.preventDefault();
    keys[pressed]();
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copies]");
  // Without a text of its own, a button copies what it is part of.
  const copies = button?.dataset.copies || button?.closest("[data-copy]")?.dataset.copy;
  if (copies) navigator.clipboard.writeText(copies).then(() => tell("Copied."));
  const confirmed = event.target.closest("button[data-confirm]");
  if (confirmed && !confirm(confirmed.dataset.confirm)) event.preventDefault();
});

// Live updates: read the page again when memory has changed, unless somebody is typing.

const isBusy = () =>
  $("dialog[open]") !== null ||
  document.activeElement?.matches("input, textarea, select") ||
  $$("main textarea, main input[type=text], main input[type=search]").some((field) => field.value !== field.defaultValue);

let isStale = false;
let version = 0;

async function refresh() {
  if (isBusy() || document.hidden) {
    isStale = true;
    return;
  }
  isStale = false;
  if ($("main").hasAttribute("data-keep")) {
    document.dispatchEvent(new CustomEvent("ctx:changed"));
    return;
  }
  const mine = ++version;
  const response = await fetch(location.href, { headers: { "X-Refresh": "1" } });
  if (!response.ok || mine !== version || isBusy()) return;
  const next = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = $("main");
  const fresh = $("main", next);
  if (!fresh) return;
  $(".zone").textContent = $(".zone", next).textContent;
  if (main.innerHTML === fresh.innerHTML) return;
  const index = items().indexOf(chosen());
  const open = $$("details[id][open]", main).map((each) => each.id);
  main.replaceChildren(...fresh.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (index >= 0) items()[index]?.classList.add("chosen");
  document.dispatchEvent(new CustomEvent("ctx:refreshed"));
}

function listen() {
  const { live: address, channel: name } = $("main")?.dataset ?? {};
  const shown = $(".live");
  if (!address || !window.EventSource) return;
  // Browsers allow six connections to a server: one tab listens and tells the others.
  const channel = new BroadcastChannel(`ctx ${name}`);
  const note = (state) => {
    shown.hidden = false;
    shown.classList.toggle("lost", state === "lost");
    shown.textContent = state === "lost" ? "not connected; run `ctx ui` again" : "live";
  };
  const take = (what) => (what === "changed" ? refresh() : note(what));
  channel.onmessage = (event) => take(event.data);
  const report = (what) => {
    take(what);
    channel.postMessage(what);
  };
  const hold = () =>
    new Promise(() => {
      const source = new EventSource(address);
      source.onopen = () => report("live");
      // Another program may get the port of a server that has ended: it is not asked.
      source.onerror = () => {
        source.close();
        report("lost");
      };
      source.addEventListener("changed", () => report("changed"));
    });
  if (navigator.locks) navigator.locks.request(`ctx ${name}`, hold);
  else hold();
  note("live");
}

// Times are in UTC until the server knows the zone of this browser.

async function tellZone() {
  const { zone: shown, live } = $("main")?.dataset ?? {};
  const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions();
  if (!live || !zone || zone === shown) return;
  const body = new URLSearchParams({ csrf: $("meta[name=csrf]").content, zone });
  await fetch(live.replace(/live\?.*/, "zone"), { method: "POST", body, redirect: "manual" });
  await refresh();
}

document.addEventListener("visibilitychange", () => isStale && refresh());
document.addEventListener("focusout", () => setTimeout(() => isStale && refresh(), 300));
listen();
tellZone();
