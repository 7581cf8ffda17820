/** Decides what is advised about a release that fails: an undo only where it has a revision to go back to. */
import { commandText } from "../../pod/command-text.ts";

/** `name`: of the SidecarSet. `hasWayBack`: undefined where nobody looked. */
export function undoHint(name: string, hasWayBack: boolean | undefined): string {
  if (hasWayBack) return commandText`sidecarset undo ${name}, or set another image`;
  return "set another image: no revision is kept that undo would go back to";
}
