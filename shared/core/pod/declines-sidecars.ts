/** Whether a pod asks to be left without sidecars, as its label or annotation says. */
import type { Pod } from "../../api/kubernetes.ts";
import { INJECT_KEY } from "../../api/names.ts";

export function declinesSidecars({ metadata }: Pod): boolean {
  return metadata?.labels?.[INJECT_KEY] === "false" || metadata?.annotations?.[INJECT_KEY] === "false";
}
