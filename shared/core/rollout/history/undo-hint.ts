/** Decides what is advised about a release that fails: an undo only where it has a revision to go back to. */
import { commandText } from "../../pod/command-text.ts";

/** `name` is the SidecarSet's. `hasWayBack` is undefined where nobody looked at the revisions. */
export function undoHint(name: string, hasWayBack: boolean | undefined): string {
  if (hasWayBack) return commandText`sidecarset undo ${name}, or set another image`;
  if (hasWayBack === undefined) return commandText`set another image; sidecarset history ${name} shows the revisions`;
  return "set another image: no revision is kept that undo would go back to";
}
