/** Prints the figures of the core as a table for people. */
import type { CoreFigures } from "./core.ts";
import type { Measured } from "./measure.ts";

const rounded = (value: number, digits = 1) => value.toFixed(digits).padStart(10);

function line(title: string, { microseconds, best, bytes }: Measured, timesFloor?: number): string {
  const times = (timesFloor?.toFixed(2) ?? "").padStart(9);
  return `${title.padEnd(34)}${rounded(microseconds)}${rounded(best)}${times}${String(bytes ?? "").padStart(10)}`;
}

function value(title: string, figure: number, digits = 1): string {
  return `${title.padEnd(34)}${rounded(figure, digits)}`;
}

export function coreTable(figures: CoreFigures, rounds: number): string {
  const { admissions, request, decideMilliseconds } = figures;
  return [
    `pod of ${figures.bodyBytes} bytes, patch of ${figures.patchBytes} bytes; ${rounds} rounds, Node ${process.version}`,
    "",
    "                                   median µs   best µs  × floor     bytes",
    line("floor: parse and stringify", figures.floor),
    ...admissions.map((figure) => line(`+ admission, ${figure.sidecarSets} SidecarSets`, figure, figure.timesFloor)),
    line(`whole request, ${request.sidecarSets} SidecarSets`, request, request.timesFloor),
    value("a SidecarSet: defaults, hashes", figures.mutateSidecarSetMicroseconds),
    "",
    "                                      growth exponent",
    value("1 to 200 SidecarSets", figures.admissionExponent, 3),
    value("1 to 200, best rounds", figures.bestAdmissionExponent, 3),
    value("1 to 50000, best rounds", figures.bestLongExponent, 3),
    value("1 to 50000 if no index helps", figures.bestScanExponent, 3),
    value("decide", figures.decideExponent, 3),
    "",
    "                                          ms",
    value("index of 50000 SidecarSets", figures.indexMilliseconds),
    ...decideMilliseconds.map(({ pods, milliseconds }) => value(`decide, ${pods} pods`, milliseconds)),
    "",
  ].join("\n");
}
