// A form that is opened gets the focus in its first field.

document.addEventListener(
  "toggle",
  (event) => {
    const form = event.target;
    if (form.open && form.matches("details[data-focus]")) form.querySelector("textarea, select, input[type=text]")?.focus();
  },
  true,
);
