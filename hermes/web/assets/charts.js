// Draws the samples of the last hour as SVG, and adds new ones as they come.

import { follow } from "./page.js";

const KEPT = 720;
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 90;

const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);
const number = (value) => (value >= 10000 ? `${(value / 1000).toFixed(1)} k` : `${Math.round(value)}`);
const sum = (samples, field) => samples.reduce((total, each) => total + each[field], 0);
const mean = (samples, field) => {
  const found = samples.map((each) => each[field]).filter((value) => value !== null);
  return found.length ? found.reduce((a, b) => a + b, 0) / found.length : null;
};
const total = (field) => (samples) => sum(samples, field);
const average = (field) => (samples) => mean(samples, field);

const CHARTS = {
  turns: { lines: [total("answered"), total("failed")], names: ["answered", "failed"], show: number, bars: true },
  latency: { lines: [average("latency_s")], show: seconds },
  first: { lines: [average("first_token_s")], show: seconds },
  tokens: { lines: [total("prompt_tokens"), total("completion_tokens")], names: ["in", "out"], show: number, bars: true },
  cost: { lines: [total("cost_usd")], show: (value) => `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`, bars: true },
  commits: { lines: [total("commits")], show: number, bars: true },
  memory: { lines: [average("memory_bytes")], show: (value) => `${(value / 2 ** 20).toFixed(1)} MB` },
  lag: { lines: [average("lag_s")], show: (value) => `${(value * 1000).toFixed(1)} ms` },
};
const COLUMNS = 60;
const SHORTEST_S = 300;

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** The time that the charts cover: that of the samples, at least a few minutes. */
function range(samples) {
  return samples.length ? Math.min(3600, Math.max(SHORTEST_S, samples.at(-1).at - samples[0].at)) : SHORTEST_S;
}

function columns(samples, now) {
  const found = Array.from({ length: COLUMNS }, () => []);
  const column = range(samples) / COLUMNS;
  for (const each of samples) {
    const age = Math.floor((now - each.at) / column);
    if (age >= 0 && age < COLUMNS) found[COLUMNS - 1 - age].push(each);
  }
  return found;
}

function draw(figure, chart, samples) {
  const now = samples.length ? samples.at(-1).at : 0;
  const grouped = columns(samples, now);
  const series = chart.lines.map((value) => grouped.map((group) => (group.length ? value(group) : null)));
  const highest = Math.max(...series.flat().filter((value) => value !== null), 0);
  const most = highest || 1;
  const step = WIDTH / COLUMNS;
  const y = (value) => HEIGHT - 4 - (value / most) * (HEIGHT - 18);
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const name = figure.querySelector("figcaption").firstChild.textContent;
  const sums = chart.lines.map((value) => value(samples));
  const latest = sums[0] === null ? "no value" : sums.map((each, i) => [chart.names?.[i], chart.show(each)].filter(Boolean).join(" ")).join(", ");
  svg.setAttribute("aria-label", `${name}, ${latest}; at most ${chart.show(most)}`);
  svg.append(element("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 4, y2: HEIGHT - 4, class: "axis" }));
  series.forEach((values, index) => {
    if (chart.bars) {
      values.forEach((value, i) => {
        if (!value) return;
        const width = (step - 1) / series.length;
        svg.append(element("rect", { x: i * step + index * width, y: y(value), width, height: HEIGHT - 4 - y(value), class: `line-${index}` }));
      });
      return;
    }
    const points = values.map((value, i) => (value === null ? null : [i * step + step / 2, y(value)]));
    const path = points.map((point, i) => (point ? `${points[i - 1] ? "L" : "M"}${point.map((each) => each.toFixed(1))}` : "")).join("");
    svg.append(element("path", { d: path, class: `line-${index}` }));
    const last = points.findLast((point) => point);
    if (last) svg.append(element("circle", { cx: last[0], cy: last[1], r: 2.5, class: `line-${index}` }));
  });
  const label = element("text", { x: 2, y: 11 });
  label.textContent = highest ? chart.show(highest) : "";
  svg.append(label);
  figure.querySelector(".plot").replaceChildren(svg);
  figure.querySelector("output").textContent = latest === "no value" ? "–" : latest;
}

const figures = [...document.querySelectorAll("[data-chart]")];
let samples = [];
const drawAll = () => {
  document.querySelector("[data-range]").textContent = `of the last ${Math.round(range(samples) / 60)} minutes`;
  figures.forEach((figure) => draw(figure, CHARTS[figure.dataset.chart], samples));
};

const answer = await fetch("/ui/samples");
if (answer.ok) samples = (await answer.json()).samples;
drawAll();
follow("/ui/live-samples", {
  sample: (sample) => {
    if (samples.length && sample.number <= samples.at(-1).number) samples = [];
    samples = [...samples.slice(1 - KEPT), sample];
    drawAll();
  },
});
