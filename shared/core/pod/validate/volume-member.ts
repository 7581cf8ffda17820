/** Decides whether single members of a volume source are as they must be. */
import { type FieldError, invalid, required } from "../../../go/field-error.ts";
import { numberOf } from "../../admission/integer.ts";

const HIGHEST_MODE = 0o777;

/** Members that must be there and not be empty. */
export function requireMembers<T extends object>(
  source: T,
  members: readonly (keyof T & string)[],
  field: string,
): readonly FieldError[] {
  return members.flatMap((member) => {
    const value = source[member] as unknown as string | readonly unknown[] | null | undefined;
    return value?.length ? [] : [required(`${field}.${member}`)];
  });
}

/** 0 stands for the whole disk, though the reference's message does not say so. */
export function validatePartition(partition: number | undefined, field: string): readonly FieldError[] {
  const number = numberOf(partition);
  const detail = "must be between 1 and 255, inclusive";
  return number < 0 || number > 255 ? [invalid(`${field}.partition`, partition, detail)] : [];
}

export function validateMode(mode: number | undefined, field: string): readonly FieldError[] {
  const isMode = mode == null || (numberOf(mode) >= 0 && numberOf(mode) <= HIGHEST_MODE);
  return isMode ? [] : [invalid(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}
