/** A number of pods, or a share of all, as it is typed. */
import type { IntOrString } from "../../../shared/api/kubernetes.ts";
import { CliError } from "../../terminal/error.ts";

/** `where`: what was typed, for the sentence. @throws CliError */
export function intOrShare(where: string, text: string): IntOrString {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (/^\d{1,3}%$/.test(text) && Number.parseInt(text, 10) <= 100) return text;
  throw new CliError(`${where}: write a number of pods, or a share such as 10%`);
}
