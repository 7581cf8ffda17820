import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { formatQuantity, parseQuantity, readQuantity } from "../../../shared/go/quantity/quantity.ts";
import {
  addQuantities,
  compareQuantities,
  integerValue,
  milliValue,
  roundUpToMilli,
} from "../../../shared/go/quantity/quantity-arithmetic.ts";

interface Row {
  readonly text: string;
  readonly other?: string;
}

/** apimachinery's results for each quantity, alone and with the quantity before it. golden/quantity.go prints them. */
const golden: readonly Row[] = JSON.parse(readFileSync(join(import.meta.dirname, "golden/quantity.json"), "utf8"));

function rowOf({ text, other = "0" }: Row): unknown {
  const quantity = readQuantity(text);
  if ("kind" in quantity) return { text, error: quantity.message, compare: 0 };
  const before = parseQuantity(other);
  if (!before) throw new Error(`${other} is no quantity`);
  const sum = addQuantities(quantity, before);
  return {
    text,
    shown: formatQuantity(quantity),
    rounded: formatQuantity(roundUpToMilli(quantity)),
    value: String(integerValue(quantity)),
    milli: String(milliValue(quantity)),
    other,
    sum: formatQuantity(sum),
    sumInMilli: String(milliValue(sum)),
    compare: compareQuantities(quantity, before),
  };
}

test("quantities are read, printed, rounded, added and compared as in Kubernetes", () => {
  expect(golden.length).toBeGreaterThan(400);
  expect(golden.map(rowOf)).toEqual(golden);
});
