// Progress of a study that runs, from the server that this page came from.

for (const box of document.querySelectorAll(".live")) {
  const [said, bar, button, list] = ["strong", "progress", "button", "ul"].map(query => box.querySelector(query));
  const source = new EventSource("events");
  const duration = seconds => (seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);
  source.addEventListener("message", event => {
    const now = JSON.parse(event.data);
    bar.max = Math.max(now.total, 1);
    bar.value = now.done;
    const quiet = now.over || now.quiet === null || now.quiet < 60 ? "" : `, nothing new for ${duration(now.quiet)}`;
    said.textContent = now.over ? `All ${now.total} runs are finished.` : `${now.done} of ${now.total} runs are finished${quiet}.`;
    list.replaceChildren(...now.running.map(one => {
      const line = document.createElement("li");
      const of = one.steps === null ? "" : ` of ${one.steps.toLocaleString("en")}`;
      const loss = one.loss === null ? "" : `, loss ${Number(one.loss.toPrecision(4))}`;
      line.textContent = `${one.key}: step ${one.step.toLocaleString("en")}${of}${loss}`;
      return line;
    }));
    const fresh = now.version !== box.dataset.version;
    button.hidden = !fresh;
    if (fresh && box.dataset.reload !== undefined) location.reload();
  });
  source.addEventListener("error", () => { said.textContent = "The server does not answer: is it still running?"; });
  button.addEventListener("click", () => location.reload());
}
