/** Decides which hash of a SidecarSet a pod's annotation has: what every decision asks of every pod. */
import { byText } from "../../go/by-text.ts";
import { readUpgradeRecords } from "./pod-records.ts";

/** Of the value of kruise.io/sidecarset-hash or …-hash-without-image; "": there is none for that SidecarSet. */
export function recordedHash(text: string | undefined, sidecarSetName: string): string {
  // A value that is null is "" in Go.
  return text ? hashIn(text, sidecarSetName) : "";
}

const hashIn = byText((text, sidecarSetName) => readUpgradeRecords(text).records[sidecarSetName]?.hash ?? "");
