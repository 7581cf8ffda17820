/** The hash of a SidecarSet in a pod's annotation, which every decision reads from every pod. */
import { byText } from "../../go/by-text.ts";
import { readUpgradeRecords } from "./pod-records.ts";

/** Reads the hash from kruise.io/sidecarset-hash or …-hash-without-image; "": no entry for that SidecarSet. */
export function recordedHash(text: string | undefined, sidecarSetName: string): string {
  // A value that is null is "" in Go.
  return text ? hashIn(text, sidecarSetName) : "";
}

const hashIn = byText((text, sidecarSetName) => readUpgradeRecords(text).records[sidecarSetName]?.hash ?? "");
