// One question with a few answers.

/** Ask, and return the key of the answer that was chosen; Escape is "cancel". */
export function choose(question, answers) {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  text.id = "question";
  text.textContent = question;
  dialog.setAttribute("aria-labelledby", text.id);
  dialog.append(text);
  for (const [key, label] of Object.entries(answers)) {
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", () => dialog.close(key));
    dialog.append(button);
  }
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || "cancel");
    });
    dialog.showModal();
  });
}
