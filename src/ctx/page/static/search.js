// Completion in the search box: an ARIA combobox over GET /api/v1/completions.

const DELAY_MS = 80;

function combobox(box) {
  const input = box.querySelector("input");
  if (!input || box.dataset.ready) return;
  box.dataset.ready = "1";
  const list = document.createElement("ul");
  list.className = "options";
  list.id = "query-options";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  box.append(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", list.id);

  let answer = { start: 0, end: 0, candidates: [] };
  let active = -1;
  let timer = 0;
  let wanted = 0;

  const close = () => {
    clearTimeout(timer);
    wanted++;
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const activate = (index) => {
    const options = [...list.children];
    active = options.length ? (index + options.length) % options.length : -1;
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === active)));
    if (active < 0) return;
    options[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[active].id);
  };

  const accept = (index) => {
    const candidate = answer.candidates[index];
    const before = input.value.slice(0, answer.start);
    const after = input.value.slice(answer.end);
    // After a value comes the next word; after `type:` comes its value.
    const space = candidate.kind === "filter" || after.startsWith(" ") ? "" : " ";
    const place = before.length + candidate.value.length + space.length;
    input.value = before + candidate.value + space + after;
    input.setSelectionRange(place, place);
    close();
    if (candidate.kind === "filter") ask();
  };

  const show = () => {
    list.replaceChildren(
      ...answer.candidates.map((candidate, index) => {
        const option = document.createElement("li");
        option.id = `query-option-${index}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        const label = document.createElement("span");
        label.className = "label";
        label.textContent = candidate.label;
        const about = document.createElement("span");
        about.className = "quiet";
        about.textContent = candidate.kind === "view" ? `view: ${candidate.description}` : candidate.description;
        option.append(label, about);
        // A click must not take the focus, which would close the list before it counts.
        option.addEventListener("mousedown", (event) => event.preventDefault());
        option.addEventListener("click", () => accept(index));
        return option;
      }),
    );
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = answer.candidates.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  };

  const ask = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++wanted;
      const address = new URL(box.dataset.completions, location.href);
      address.searchParams.set("q", input.value);
      // The server counts characters, JavaScript counts UTF-16 units.
      const before = [...input.value.slice(0, input.selectionStart)].length;
      address.searchParams.set("at", String(before));
      const response = await fetch(address).catch(() => null);
      if (!response?.ok || mine !== wanted || document.activeElement !== input) return;
      const read = await response.json();
      if (mine !== wanted) return;
      const letters = [...input.value];
      const units = (count) => letters.slice(0, count).join("").length;
      const typed = input.value.slice(units(read.start), units(read.end));
      // What is typed already is no proposal.
      const rest = read.candidates.filter((each) => each.value !== typed);
      answer = { start: units(read.start), end: units(read.end), candidates: rest };
      show();
    }, DELAY_MS);
  };

  input.addEventListener("input", ask);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const isOpen = !list.hidden;
    if (event.key === "ArrowDown" && !isOpen) ask();
    else if (!isOpen) return;
    else if (event.key === "ArrowDown") activate(active + 1);
    else if (event.key === "ArrowUp") activate(active < 0 ? answer.candidates.length - 1 : active - 1);
    else if (event.key === "Escape") {
      close();
      event.stopPropagation();
    } else if ((event.key === "Enter" || event.key === "Tab") && active >= 0) accept(active);
    else if (event.key === "Tab") return close();
    else return;
    event.preventDefault();
  });
}

const start = () => document.querySelectorAll(".query-box").forEach(combobox);
document.addEventListener("ctx:refreshed", start);
start();
