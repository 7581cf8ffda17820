/** Decides how many of `total` an int-or-string stands for, in the two ways that Kubernetes has read it over time. */
import type { IntOrString } from "../api/kubernetes.ts";
import { isInt64 } from "./atoi.ts";

const DECIMAL = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const INTEGER = /^[+-]?\d+$/;

/**
 * A number as it is; "33%" or "12.5%" as that share, rounded up. Undefined for any other text.
 * Source: apimachinery's GetScaledValueFromIntOrPercent, with OpenKruise's decimals.
 */
export function scaleIntOrPercent(value: IntOrString, total: number): number | undefined {
  if (typeof value === "number") return value;
  const percent = value.slice(0, -1);
  if (!value.endsWith("%") || !DECIMAL.test(percent)) return undefined;
  return share(Number(percent), total);
}

/**
 * A number as it is; text is always a percentage, with or without its sign: "5" is 5 %. Undefined when it is not a
 * whole number. Source: apimachinery's deprecated GetValueFromIntOrPercent.
 */
export function scaleIntOrPercentLegacy(value: IntOrString, total: number): number | undefined {
  if (typeof value === "number") return value;
  const percent = value.replaceAll("%", "");
  if (!INTEGER.test(percent) || !isInt64(percent)) return undefined;
  return share(Number(percent), total);
}

function share(percent: number, total: number): number {
  return Math.ceil((percent * total) / 100);
}
