"use strict";
/* What the page can do beside being read; without this script nothing on it is missing. */
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const all = (words, root = document) => [...root.querySelectorAll(words)];
  const make = (name, words, class_) => {
    const made = document.createElement(name);
    if (words) made.textContent = words;
    if (class_) made.className = class_;
    return made;
  };

  /* ---- the shared axis of all strips of the whole run ---- */
  const strips = all(".shared svg.strip").map(svg => {
    const given = svg.dataset;
    return {svg, pan: svg.querySelector(".pan"), axis: svg.querySelector(".axis"), grids: svg.querySelector(".grids"),
            plot: svg.querySelector("svg.plot"), left: +given.left, right: +given.right};
  });
  const full = strips.length ? [+strips[0].svg.dataset.low, +strips[0].svg.dataset.high] : [0, 1];
  let shown = [...full];
  let pinned = null;
  const seconds = t => `${t.toFixed(3)} s`;

  function ticks([low, high]) {
    const rough = (high - low) / 12, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= rough * (1 - 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push([i * step, step]);
    return found;
  }
  const label = (t, step) => t.toFixed(Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
  const element = (name, attributes, words) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words) made.textContent = words;
    return made;
  };
  function upright(strip) {
    strip.upright ??= all("text, .glyph", strip.pan).map(one => {
      const box = one.getBBox();
      return [one, one.tagName === "text" ? +one.getAttribute("x") : box.x + box.width / 2];
    });
    return strip.upright;
  }
  function draw() {
    const zoom = (full[1] - full[0]) / (shown[1] - shown[0]);
    for (const strip of strips) {
      const {left, right} = strip, width = right - left;
      const at = t => left + (t - shown[0]) / (shown[1] - shown[0]) * width;
      const glyphs = upright(strip);
      const moved = left - zoom * (left + (shown[0] - full[0]) / (full[1] - full[0]) * width);
      strip.pan.setAttribute("transform", `matrix(${zoom} 0 0 1 ${moved} 0)`);
      for (const [one, x] of glyphs) one.setAttribute("transform", `matrix(${1 / zoom} 0 0 1 ${x - x / zoom} 0)`);
      const old = at0 => left + (at0 - full[0]) / (full[1] - full[0]) * width;
      const height = strip.plot.getAttribute("height"), marks = ticks(shown), y = strip.axis.dataset.y;
      strip.axis.replaceChildren(...marks.map(([t, step]) => element("text", {x: at(t), y, class: "tick"}, label(t, step))));
      strip.grids.replaceChildren(...marks.map(([t]) =>
        element("line", {x1: old(t), x2: old(t), y1: 12, y2: height, class: "grid"})));
      strip.pin?.remove();
      if (pinned !== null) {
        strip.pin = element("line", {x1: old(pinned), x2: old(pinned), y1: 0, y2: height, class: "pin"});
        strip.pan.append(strip.pin);
      }
    }
    reset.hidden = zoom < 1.0001;
    say(words.textContent);
  }
  function show(low, high) {
    const span = Math.min(full[1] - full[0], Math.max(1e-5, high - low));
    low = Math.min(Math.max(full[0], low), full[1] - span);
    shown = [low, low + span];
    draw();
  }
  const zoomed = (at, factor) => show(at - (at - shown[0]) * factor, at + (shown[1] - at) * factor);

  /* ---- read-out ---- */
  const board = make("div", "", "readout");
  board.setAttribute("role", "status");
  const words = make("p"), back = make("a", "← back to the evidence", "back"), reset = make("button", "whole run");
  back.hidden = reset.hidden = board.hidden = true;
  board.append(words, back, reset);
  document.body.append(board);
  const say = text => { words.textContent = text; board.hidden = !text && back.hidden && reset.hidden; };
  reset.onclick = () => { show(...full); say(""); };
  const titleOf = target => target.closest?.("svg.plot *")?.closest("g, a, rect, path, line, text") && (() => {
    for (let one = target; one && one.tagName !== "svg"; one = one.parentNode) {
      const title = [...one.children].find(child => child.tagName === "title");
      if (title) return title.textContent;
    }
    return "";
  })();

  for (const strip of strips) {
    const {svg, left, right} = strip;
    const timeAt = event => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return shown[0] + (Math.min(right, Math.max(left, x)) - left) / (right - left) * (shown[1] - shown[0]);
    };
    let held = null;
    svg.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      zoomed(timeAt(event), (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8);
    }, {passive: false});
    svg.addEventListener("pointerdown", event => {
      if (event.button === 0 && event.pointerType !== "touch") held = {x: event.clientX, shown: [...shown], moved: false};
    });
    svg.addEventListener("pointermove", event => {
      if (held) {
        const width = svg.getBoundingClientRect().width * (right - left) / svg.viewBox.baseVal.width;
        const by = (event.clientX - held.x) / width * (held.shown[1] - held.shown[0]);
        held.moved ||= Math.abs(event.clientX - held.x) > 3;
        if (held.moved) show(held.shown[0] - by, held.shown[1] - by);
      }
      say(`${seconds(timeAt(event))}  ${titleOf(event.target) || ""}`.trim());
    });
    svg.addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointerleave", () => { held = null; say(""); });
    svg.addEventListener("click", event => { if (held?.moved) event.preventDefault(); }, true);
    svg.addEventListener("dblclick", event => zoomed(timeAt(event), 0.4));
    const bar = make("div", "", "zoom");
    for (const [sign, told, act] of [["+", "zoom in", () => zoomed((shown[0] + shown[1]) / 2, 0.5)],
                                     ["−", "zoom out", () => zoomed((shown[0] + shown[1]) / 2, 2)],
                                     ["←", "earlier", () => show(...shown.map(t => t - (shown[1] - shown[0]) / 3))],
                                     ["→", "later", () => show(...shown.map(t => t + (shown[1] - shown[0]) / 3))]]) {
      const button = make("button", sign);
      button.setAttribute("aria-label", told);
      button.title = told;
      button.onclick = act;
      bar.append(button);
    }
    svg.parentNode.before(bar);
  }

  /* ---- from a row to its place in a strip, and back ---- */
  let from = 0;
  for (const link of all("a[data-time]")) {
    link.addEventListener("click", event => {
      const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      if (!target || !strips.length) return;
      event.preventDefault();
      pinned = +link.dataset.time;
      const span = Math.min(full[1] - full[0], Math.max(0.5, (full[1] - full[0]) / 20));
      show(pinned - span / 2, pinned + span / 2);
      const home = link.closest("[id]");
      link.id ||= `from-${++from}`;
      back.href = `#${home.tagName === "LI" ? home.id : link.id}`;
      back.hidden = false;
      say((link.closest("li, tr") || link).textContent.trim().replace(/\s+/g, " "));
      target.scrollIntoView({block: "start"});
      history.replaceState(null, "", `#${encodeURIComponent(target.id)}`);
    });
  }
  back.onclick = event => {
    event.preventDefault();
    open_to(back.hash);
    back.hidden = true;
    pinned = null;
    draw();
    say("");
  };
  function open_to(hash) {
    const target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    target.scrollIntoView({block: "start"});
    all(".target").forEach(one => one.classList.remove("target"));
    target.classList.add("target");
  }
  addEventListener("hashchange", () => open_to(location.hash));

  /* ---- tables ---- */
  const number = text => {
    const found = text.replace(/,/g, "").match(/^[^\d-]*(-?\d+(\.\d+)?)/);
    return found ? +found[1] : NaN;
  };
  for (const table of all("table.sorts")) {
    const body = table.tBodies[0], rows = [...body.rows];
    all("thead th", table).forEach(head => {
      const column = head.cellIndex, button = make("button", head.textContent, "sort");
      head.replaceChildren(button);
      button.onclick = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("thead th", table).forEach(one => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = row => row.cells[column].textContent.trim(), numeric = head.classList.contains("number");
        const digits = (a, b) => key(a).localeCompare(key(b), undefined, {numeric: true});
        const order = (a, b) => numeric && number(key(a)) - number(key(b)) || digits(a, b);
        body.append(...rows.sort((a, b) => down ? order(b, a) : order(a, b)));
      };
    });
    if (rows.length < 8) continue;
    const field = make("input", "", "filter");
    field.type = "search";
    field.placeholder = `filter ${rows.length} rows`;
    field.setAttribute("aria-label", field.placeholder);
    field.oninput = () => {
      const wanted = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    };
    table.before(field);
  }

  /* ---- copy of the command ---- */
  for (const place of all(".command")) {
    const button = make("button", "copy", "copy"), code = place.querySelector("code");
    button.onclick = async () => {
      try { await navigator.clipboard.writeText(code.textContent); } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 2000);
    };
    place.append(" ", button);
  }
  open_to(location.hash);
})();
