// The map: training examples and coresets on a canvas; hover tells, a click keeps, a lasso gives row numbers.

const decode = text => new Uint16Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
const make = (tag, kind, text) => {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
};

function startMap(section, data) {
  const find = query => section.querySelector(query);
  const [canvas, tip, said, kept, outcome] = ["canvas", ".tip", ".said", ".kept", ".outcome"].map(find);
  const pen = canvas.getContext("2d"), boxes = [...section.querySelectorAll(".sets input")];
  const real = unpack(data.points), sets = data.sets.map(unpack);
  const view = { x: 0.5, y: 0.5, zoom: 1, whole: 1 }, chosen = new Set();
  let over = null, pinned = [], lasso = null, drag = null, asked = false, crowded = false;

  function unpack(table) {
    const part = { ...table, at: decode(table.at), labels: decode(table.labels), near: decode(table.near) };
    if (table.sheet) {
      part.image = new Image();
      part.image.addEventListener("load", draw);
      part.image.src = table.sheet.uri;
    }
    return part;
  }
  const ink = name => getComputedStyle(section).getPropertyValue(name).trim();
  const ofSet = set => ink("--" + set.colour.replace("c-", ""));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ofClass = c => {
    const turn = data.classes.length <= 12 ? 360 / data.classes.length : 137.508;
    return `hsl(${Math.round(c * turn + 20) % 360} 58% ${dark.matches ? 62 : 44}%)`;
  };
  const only = () => find("select").value;
  const shownSets = () => sets.filter((_, k) => boxes[k].checked);
  const visible = (part, i) => only() === "" || part.labels[i] === Number(only());
  const side = () => Math.min(canvas.clientWidth, canvas.clientHeight) - 36;
  const across = (part, i) => canvas.clientWidth / 2 + (part.at[2 * i] / 65535 - view.x) * side() * view.zoom;
  const down = (part, i) => canvas.clientHeight / 2 - (part.at[2 * i + 1] / 65535 - view.y) * side() * view.zoom;
  const picture = part => part.image && part.image.complete && part.image.naturalWidth;
  const closer = () => view.zoom / view.whole;  // 1 where all training examples fit the canvas
  const extent = () => Math.min(48, 20 * Math.sqrt(closer()));
  const onCanvas = (x, y) => x > 0 && y > 0 && x < canvas.clientWidth && y < canvas.clientHeight;

  function fit() {
    const ends = [0, 1].map(k => real.at.filter((_, i) => i % 2 === k)).map(v => [v.reduce((a, b) => Math.min(a, b)), v.reduce((a, b) => Math.max(a, b))]);
    const [wide, high] = ends.map(([low, top]) => Math.max(top - low, 1) / 65535);
    [view.x, view.y] = ends.map(([low, top]) => (low + top) / 2 / 65535);
    view.whole = view.zoom = Math.min((canvas.clientWidth - 48) / wide, (canvas.clientHeight - 48) / high) / side();
    hover(null);
    redraw();
  }

  function redraw() {
    if (!asked) requestAnimationFrame(() => { asked = false; draw(); });
    asked = true;
  }
  function draw() {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.imageSmoothingEnabled = false;
    const colours = data.classes.map((_, c) => ofClass(c)), size = Math.min(4.5, 2 * Math.sqrt(closer()));
    for (let i = 0; i < real.count; i++) {
      pen.globalAlpha = visible(real, i) ? 0.6 : 0.07;
      pen.fillStyle = colours[real.labels[i]];
      pen.beginPath();
      pen.arc(across(real, i), down(real, i), size, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    for (const i of chosen) ring(across(real, i), down(real, i), size + 2.5, ink("--ink"), 1.5);
    const on = shownSets(), count = set => set.at.filter((_, i) => i % 2 && onCanvas(across(set, i >> 1), down(set, i >> 1))).length;
    crowded = on.reduce((sum, set) => sum + count(set), 0) > 60;
    on.forEach(drawSet);
    for (const one of [...pinned, over].filter(Boolean)) point(one);
    if (lasso) outline();
  }
  function drawSet(set) {
    const colour = ofSet(set), paper = ink("--surface"), box = extent();
    for (let i = 0; i < set.count; i++) {
      const x = across(set, i), y = down(set, i);
      pen.globalAlpha = visible(set, i) ? 1 : 0.1;
      if (picture(set) && !crowded) {
        pen.fillStyle = colour;
        pen.fillRect(x - box / 2 - 2, y - box / 2 - 2, box + 4, box + 4);
        tile(pen, set, i, x - box / 2, y - box / 2, box);
      } else {
        pen.fillStyle = colour;
        ring(x, y, 5.5, paper, 1.5, true);
      }
    }
    pen.globalAlpha = 1;
  }
  function tile(to, part, i, x, y, box) {
    const { width, height, across: line } = part.sheet;
    to.drawImage(part.image, (i % line) * width, Math.floor(i / line) * height, width, height, x, y, box, box);
  }
  function ring(x, y, r, colour, width, fill) {
    pen.beginPath();
    pen.arc(x, y, r, 0, 7);
    if (fill) pen.fill();
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }
  function point({ part, i }) {
    const x = across(part, i), y = down(part, i);
    pen.strokeStyle = ink("--ink");
    pen.lineWidth = 1;
    for (const j of neighbours(part, i)) {
      pen.globalAlpha = 0.55;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(across(real, j), down(real, j));
      pen.stroke();
      pen.globalAlpha = 1;
      ring(across(real, j), down(real, j), 4, ink("--ink"), 1.2);
    }
    ring(x, y, part === real || !picture(part) || crowded ? 9 : extent() * 0.75 + 3, ink("--accent"), 2.5);
  }
  function outline() {
    pen.beginPath();
    lasso.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.globalAlpha = 0.15;
    pen.fillStyle = ink("--accent");
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = ink("--accent");
    pen.lineWidth = 1.5;
    pen.stroke();
  }
  const neighbours = (part, i) => [...part.near.slice(i * part.each, (i + 1) * part.each)];
  const named = (part, i) => (part.rows ? `row ${part.rows[i]}` : `example ${i + 1}`);
  const title = ({ part, i }) =>
    [data.classes[part.labels[i]], part === real ? "" : part.name, part.learnt ? "learnt" : named(part, i)]
      .filter(Boolean).join(" · ");

  function look(part, i, size) {
    if (!picture(part)) return make("p", "words", part.words ? part.words[i] : "");
    const small = make("canvas", "thumb");
    small.width = part.sheet.width;
    small.height = part.sheet.height;
    small.style.width = `${size}px`;
    small.style.height = `${(size * part.sheet.height) / part.sheet.width}px`;
    small.setAttribute("role", "img");
    small.setAttribute("aria-label", title({ part, i }));
    const { width, height, across: line } = part.sheet;
    small.getContext("2d").drawImage(part.image, -(i % line) * width, -Math.floor(i / line) * height);
    return small;
  }
  function hover(one) {
    const same = one === over || (one && over && one.part === over.part && one.i === over.i);
    if (same) return;
    over = one;
    tip.hidden = !one;
    if (one) {
      tip.replaceChildren(look(one.part, one.i, 84), make("span", "", title(one)));
      const x = across(one.part, one.i), y = down(one.part, one.i), left = x > canvas.clientWidth / 2;
      tip.style.left = left ? "" : `${x + 18}px`;
      tip.style.right = left ? `${canvas.clientWidth - x + 18}px` : "";
      tip.style.top = `${Math.max(4, Math.min(y - 30, canvas.clientHeight - 130))}px`;
    }
    redraw();
  }
  function keep(one) {
    pinned = [one, ...pinned.filter(p => p.part !== one.part || p.i !== one.i)].slice(0, 6);
    kept.replaceChildren(...pinned.map(card));
    redraw();
  }
  function card(one) {
    const box = make("article", "card"), near = make("div", "near"), close = make("button", "close", "×");
    close.type = "button";
    close.setAttribute("aria-label", `Remove ${title(one)}`);
    close.addEventListener("click", () => {
      pinned = pinned.filter(p => p !== one);
      box.remove();
      if (!pinned.length) kept.replaceChildren(make("p", "note", "Nothing is kept."));
      canvas.focus();
      redraw();
    });
    const own = data.classes[one.part.labels[one.i]];
    for (const j of neighbours(one.part, one.i)) {
      const other = make("figure", data.classes[real.labels[j]] === own ? "" : "other");
      const name = data.classes[real.labels[j]] + (real.image ? "" : ` · ${named(real, j)}`);
      other.append(look(real, j, 44), make("figcaption", "", name));
      other.title = title({ part: real, i: j });
      near.append(other);
    }
    box.append(close, look(one.part, one.i, 84), make("strong", "", title(one)));
    box.append(make("span", "aside", "nearest real examples on the map"), near);
    return box;
  }
  function at(x, y, reach = 12) {
    let best = null, least = reach * reach;
    for (const part of [real, ...shownSets()]) {
      const slack = part === real ? 0 : picture(part) && !crowded ? extent() / 2 : 5;
      for (let i = 0; i < part.count; i++) {
        if (!visible(part, i)) continue;
        const gap = (across(part, i) - x) ** 2 + (down(part, i) - y) ** 2;
        const worth = part === real ? gap : gap - slack * slack;  // coresets lie on top
        if (worth <= least) [best, least] = [{ part, i }, worth];
      }
    }
    return best;
  }
  function step(dx, dy) {
    const from = over || at(canvas.clientWidth / 2, canvas.clientHeight / 2, 1e5);
    if (!from) return;
    const x = across(from.part, from.i), y = down(from.part, from.i);
    let best = over ? null : from, least = Infinity;
    for (const part of over ? [real, ...shownSets()] : []) for (let i = 0; i < part.count; i++) {
      const a = across(part, i) - x, b = down(part, i) - y, along = a * dx + b * dy, off = Math.abs(a * dy - b * dx);
      if (!visible(part, i) || along <= 0.5 || off > along) continue;
      const cost = (along + 2 * off) * (part === real ? 1 : 0.5);
      if (cost < least) [best, least] = [{ part, i }, cost];
    }
    if (best) {
      hover(best);
      said.textContent = title(best) + (best.part.words ? ". " + best.part.words[best.i] : "");
    }
  }
  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const next = Math.max(0.3 * view.whole, Math.min(60 * view.whole, view.zoom * factor)), change = 1 / view.zoom - 1 / next;
    view.x += ((x - canvas.clientWidth / 2) / side()) * change;
    view.y -= ((y - canvas.clientHeight / 2) / side()) * change;
    view.zoom = next;
    hover(null);
    redraw();
  }
  function inside(x, y) {
    let odd = false;
    for (let a = 0, b = lasso.length - 1; a < lasso.length; b = a++) {
      const [ax, ay] = lasso[a], [bx, by] = lasso[b];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
    }
    return odd;
  }
  function tell() {
    const rows = [...chosen].sort((a, b) => a - b).map(i => real.rows[i]);
    outcome.hidden = !rows.length;
    outcome.querySelector("output").textContent = `${rows.length.toLocaleString("en")} training examples chosen`;
    outcome.querySelector("textarea").value = rows.join("\n");
    redraw();
  }
  const actions = {
    lasso: button => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      canvas.classList.toggle("lasso", on);
    },
    in: () => zoom(1.5),
    out: () => zoom(1 / 1.5),
    fit,
    copy: () => { outcome.querySelector("textarea").select(); document.execCommand("copy"); },
    save: () => {
      const link = make("a"), blob = new Blob([outcome.querySelector("textarea").value + "\n"], { type: "text/plain" });
      link.href = URL.createObjectURL(blob);
      link.download = "rows.txt";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
    clear: () => { chosen.clear(); tell(); },
  };
  const keys = {
    ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
    Enter: () => over && keep(over), "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.fit,
    " ": () => {
      if (!over || over.part !== real) return;
      if (!chosen.delete(over.i)) chosen.add(over.i);
      tell();
    },
    Escape: () => { hover(null); lasso = null; redraw(); },
  };
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("blur", () => hover(null));
  canvas.addEventListener("pointerdown", event => {
    const [x, y] = [event.offsetX, event.offsetY];
    drag = { x, y, moved: false, from: { ...view } };
    if (canvas.classList.contains("lasso") || event.shiftKey) lasso = [[x, y]];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const [x, y] = [event.offsetX, event.offsetY];
    if (drag && Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
    if (drag && lasso) lasso.push([x, y]);
    else if (drag && drag.moved) {
      view.x = drag.from.x - (x - drag.x) / side() / view.zoom;
      view.y = drag.from.y + (y - drag.y) / side() / view.zoom;
    } else return hover(at(x, y));
    redraw();
  });
  canvas.addEventListener("pointerup", event => {
    if (lasso && drag.moved)
      for (let i = 0; i < real.count; i++)
        if (visible(real, i) && inside(across(real, i), down(real, i))) chosen.add(i);
    const one = drag && !drag.moved && at(event.offsetX, event.offsetY);
    drag = lasso = null;
    if (one) keep(one);
    tell();
  });
  canvas.addEventListener("pointercancel", () => { drag = lasso = null; redraw(); });
  canvas.addEventListener("pointerleave", () => drag || hover(null));
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;  // the page scrolls; two fingers on a touchpad come with ctrlKey
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
  }, { passive: false });
  for (const button of section.querySelectorAll("[data-do]"))
    button.addEventListener("click", () => actions[button.dataset.do](button));
  for (const control of [...boxes, find("select")]) control.addEventListener("change", redraw);
  for (const chip of section.querySelectorAll(".classes span")) chip.style.setProperty("--hue", ofClass(chip.dataset.c));
  dark.addEventListener("change", () => {
    for (const chip of section.querySelectorAll(".classes span")) chip.style.setProperty("--hue", ofClass(chip.dataset.c));
    redraw();
  });
  find(".explorer").hidden = false;
  fit();
  new ResizeObserver(() => (closer() === 1 ? fit() : redraw())).observe(canvas);
}

for (const block of document.querySelectorAll("script.map-data"))
  startMap(block.closest("section"), JSON.parse(block.textContent));
