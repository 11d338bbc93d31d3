import { expect, test } from "vitest";
import { h } from "../src/dom";
import { virtualList } from "../src/virtual";

function list(count: number) {
  const filled: number[] = [];
  const released: HTMLElement[] = [];
  const made = virtualList<HTMLDivElement>({
    rowHeight: 20,
    fallbackHeight: 200,
    overscan: 2,
    count: () => count,
    create: () => h("div", { class: "row" }),
    fill: (row, index) => {
      filled.push(index);
      row.textContent = String(index);
    },
    release: (row) => released.push(row),
    attributes: {},
  });
  document.body.append(made.el);
  made.refresh();
  const texts = () =>
    [...made.el.querySelectorAll<HTMLElement>(".row")]
      .filter((row) => !row.hidden)
      .map((row) => Number(row.textContent))
      .sort((a, b) => a - b);
  return { ...made, filled, released, texts };
}

test("20,000 rows take the nodes of those on show", () => {
  const { el, texts } = list(20_000);
  expect(texts()).toEqual(Array.from({ length: 12 }, (_, i) => i));
  expect((el.firstElementChild as HTMLElement).style.height).toBe("400000px");
});

test("scrolling uses the same nodes for other rows", () => {
  const { el, texts, scrollTo, released } = list(20_000);
  for (let i = 0; i < 50; i++) scrollTo(i * 371, "middle");
  expect(texts()).toContain(49 * 371);
  expect(el.querySelectorAll(".row").length).toBeLessThanOrEqual(28);
  expect(released.length).toBeGreaterThan(100);
});

test("a row that stays on show is not filled again while scrolling", () => {
  const { scrollTo, filled } = list(1000);
  filled.length = 0;
  scrollTo(10);
  expect(filled).toEqual([12]);
});

test("a row that scrolls away hands the focus to the list", () => {
  const { el, row, scrollTo } = list(1000);
  const box = h("input", {});
  row(0)!.append(box);
  box.focus();
  scrollTo(500, "middle");
  expect(document.activeElement).toBe(el);
});

test("fewer rows than fit", () => {
  expect(list(3).texts()).toEqual([0, 1, 2]);
  expect(list(0).texts()).toEqual([]);
});
