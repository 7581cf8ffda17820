/** Decides whether a text can be the name of a SidecarSet. */
import { byteLength, patternError } from "../../../go/label-name.ts";

const PATTERN = "^[a-zA-Z0-9\\-]+$";
const NAME = new RegExp(PATTERN);
const LIMIT = 63;
const NAME_ERROR = patternError(
  "sidecarset name must consist of alphanumeric characters or '-'",
  PATTERN,
  "example-com",
);

export function sidecarSetNameErrors(name: string): readonly string[] {
  const length = byteLength(name) > LIMIT ? [`must be no more than ${LIMIT} characters`] : [];
  return NAME.test(name) ? length : [NAME_ERROR, ...length];
}
