/** The progress of a rollout, in the words that every place uses. */
import { counted } from "../../go/counted.ts";

interface Counts {
  readonly matched: number;
  readonly updated: number;
  readonly updatedReady: number;
}

export function countsText({ matched, updated, updatedReady }: Counts): string {
  return `${updated} of ${counted(matched, "pod")} updated, ${updatedReady} of them ready`;
}
