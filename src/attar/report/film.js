// The film of a coreset: a slider goes through its steps; a difference view shows what was learnt since the start.

function startFilm(player) {
  const article = player.closest("article"), canvas = player.querySelector("canvas"), pen = canvas.getContext("2d");
  const [range, changes] = player.querySelectorAll("input"), output = player.querySelector("output");
  const button = player.querySelector("button"), strips = [...article.querySelectorAll(".reel .gallery img")];
  const steps = [...article.querySelectorAll(".frames span")].map(step => step.textContent);
  const gap = 2, apart = 4, wide = (strips[0].naturalWidth + gap) / steps.length - gap, high = strips[0].naturalHeight;
  const line = Math.min(strips.length, 10), lines = Math.ceil(strips.length / line);
  let playing = 0;
  canvas.width = line * (wide + apart) - apart;
  canvas.height = lines * (high + apart) - apart;
  canvas.style.width = `${Math.max(canvas.width, Math.min(600, 1.5 * canvas.width))}px`;

  function pixels(strip, frame) {
    const sheet = Object.assign(document.createElement("canvas"), { width: wide, height: high });
    const board = sheet.getContext("2d", { willReadFrequently: true });
    board.drawImage(strip, -frame * (wide + gap), 0);
    return board.getImageData(0, 0, wide, high);
  }
  function difference(strip, frame) {
    const [now, start] = [pixels(strip, frame), pixels(strip, 0)];
    for (let i = 0; i < now.data.length; i += 4) {
      const change = [0, 1, 2].reduce((sum, c) => sum + now.data[i + c] - start.data[i + c], 0) / 3;
      const share = Math.min(1, Math.abs(change) / 128), end = change < 0 ? [33, 102, 172] : [230, 110, 20];
      end.forEach((value, c) => { now.data[i + c] = 247 + share * (value - 247); });
    }
    return now;
  }
  function show() {
    const frame = Number(range.value);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    strips.forEach((strip, k) => {
      const image = changes.checked ? difference(strip, frame) : pixels(strip, frame);
      pen.putImageData(image, (k % line) * (wide + apart), Math.floor(k / line) * (high + apart));
    });
    output.textContent = steps[frame];
    range.setAttribute("aria-valuetext", `step ${steps[frame]}`);
  }
  function stop() {
    clearInterval(playing);
    playing = 0;
    button.textContent = "Play";
  }
  button.addEventListener("click", () => {
    if (playing) return stop();
    button.textContent = "Pause";
    range.value = Number(range.value) === steps.length - 1 ? 0 : range.value;
    show();
    playing = setInterval(() => {
      range.value = Number(range.value) + 1;
      show();
      if (Number(range.value) === steps.length - 1) stop();
    }, 600);
  });
  range.addEventListener("input", () => { stop(); show(); });
  changes.addEventListener("change", show);
  player.hidden = false;
  show();
}

addEventListener("load", () => document.querySelectorAll(".player").forEach(startFilm));  // once pictures are there
