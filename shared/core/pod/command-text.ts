/** Builds commands for a shell. A name that has a special meaning in a shell is never part of a command. */
import { dnsSubdomainErrors } from "../../go/label-name.ts";

/** The text in place of a command. It is a shell comment, so copying it does nothing. */
export const NO_COMMAND = "# no command is shown, because a name in it is not a valid name";

type Name = string | number | undefined | readonly (string | undefined)[];

/**
 * The text of the template, or `NO_COMMAND`. Each value must be the name of an object, KIND/NAME, a number, or a list
 * of names: stored objects and files may contain any text as a name.
 */
export function commandText(texts: TemplateStringsArray, ...names: readonly Name[]): string {
  const values = names.map((name) => (typeof name === "object" ? name : [name]));
  if (!values.flat().every(isName)) return NO_COMMAND;
  return String.raw({ raw: texts }, ...values.map((value) => value.join(" ")));
}

function isName(name: string | number | undefined): boolean {
  if (typeof name !== "string") return name !== undefined && Number.isSafeInteger(name);
  const parts = name.split("/");
  return parts.length <= 2 && parts.every((part) => dnsSubdomainErrors(part).length === 0);
}
