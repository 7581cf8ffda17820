/** Prints the figures of the webhook as a table for people. */
import type { PassesFigures, WebhookFigures, WebhookRow } from "./measure-webhook.ts";

const HEAD =
  "callers  webhook                        p50 ms   p99 ms      rps   CPU ms   patch B   × minimal:   rps    p50    CPU   × kept:  rps   GETs";

function line({ subject, sidecarSets, callers, ofMinimal, ofKept, ...row }: WebhookRow): string {
  const name = sidecarSets === undefined ? subject : `${subject}, ${sidecarSets} SidecarSets`;
  const figures = [row.p50.toFixed(2), row.p99.toFixed(2), row.requestsPerSecond.toFixed(0), row.cpu.toFixed(3)];
  const ratios = [ofMinimal.requestsPerSecond, ofMinimal.p50, ofMinimal.cpu].map((ratio) =>
    ratio.toFixed(2).padStart(7),
  );
  const kept = ofKept
    ? `${ofKept.requestsPerSecond.toFixed(2).padStart(15)}${ofKept.emptyGets.toFixed(2).padStart(7)}`
    : "";
  const columns = figures.map((figure) => figure.padStart(9)).join("");
  return `${String(callers).padStart(7)}  ${name.padEnd(33)}${columns}${String(row.patchBytes).padStart(10)}            ${ratios.join("")}${kept}`;
}

export function webhookTable({ rounds, bodyBytes, rows }: WebhookFigures): string {
  return [
    `reviews of ${bodyBytes} bytes, ${rounds} rounds, Node ${process.version}`,
    "",
    HEAD,
    ...rows.map(line),
    "",
  ].join("\n");
}

export function passesTable({ pods, rows, p99OfNone }: PassesFigures): string {
  const names = { none: "no passes", beside: "passes in the webhooks' thread", behind: "passes in their own thread" };
  return [
    `reviews by 16 callers, a pass over ${pods} pods each second: p50 ms, p99 ms, requests/s`,
    ...rows.map(
      ({ passes, p50, p99, requestsPerSecond }) =>
        `${names[passes].padEnd(32)}${[p50, p99, requestsPerSecond].map((value) => value.toFixed(1).padStart(10)).join("")}`,
    ),
    `p99, of that without passes: ${p99OfNone.beside.toFixed(2)} in the webhooks' thread, ${p99OfNone.behind.toFixed(2)} in their own`,
    "",
  ].join("\n");
}
