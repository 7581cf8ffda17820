import { describe, expect, it } from "vitest";
import {
  configKeyErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  envNameErrors,
  labelValueErrors,
  percentErrors,
  portNameErrors,
  qualifiedNameErrors,
  rangeErrors,
} from "../../../shared/go/label-name.ts";

const long = (length: number): string => "a".repeat(length);

describe("valid names", () => {
  const rows: readonly (readonly [string, (text: string) => readonly string[], string])[] = [
    ["a label key", qualifiedNameErrors, "app"],
    ["a label key with a prefix", qualifiedNameErrors, "example.com/My_Name.1"],
    ["a label key of 63 characters", qualifiedNameErrors, long(63)],
    ["an empty label value", labelValueErrors, ""],
    ["a DNS label", dnsLabelErrors, "a-1"],
    ["a DNS name of 253 characters", dnsSubdomainErrors, `${long(63)}.${long(63)}.${long(63)}.${long(61)}`],
    ["an environment variable with dots and dashes", envNameErrors, "my.env-NAME_1"],
    ["a ConfigMap key with a leading dot", configKeyErrors, ".config"],
    ["a port name of 15 characters", portNameErrors, "a-1-b-2-c-3-d-4"],
    ["a percentage beyond 100", percentErrors, "150%"],
  ];
  it.each(rows)("%s is valid", (_sentence, errorsOf, text) => {
    expect(errorsOf(text)).toEqual([]);
  });
});

describe("invalid names", () => {
  const rows: readonly (readonly [string, (text: string) => readonly string[], string, string])[] = [
    ["an empty label key", qualifiedNameErrors, "", "name part must be non-empty"],
    ["a label key with an empty prefix", qualifiedNameErrors, "/a", "prefix part must be non-empty"],
    ["a label key with two slashes", qualifiedNameErrors, "a/b/c", "a qualified name must consist of"],
    ["a label key of 64 characters", qualifiedNameErrors, long(64), "name part must be no more than 63 characters"],
    [
      "a label key of 32 characters with two bytes each",
      qualifiedNameErrors,
      "é".repeat(32),
      "name part must be no more than 63",
    ],
    ["a label value with a space", labelValueErrors, "a b", "a valid label must be an empty string or consist of"],
    ["a DNS label with a dot", dnsLabelErrors, "a.b", "must not contain dots"],
    ["a DNS label in upper case", dnsLabelErrors, "A", "a lowercase RFC 1123 label must consist of"],
    ["a DNS name that ends in a dot", dnsSubdomainErrors, "a.", "a lowercase RFC 1123 subdomain must consist of"],
    ["an environment variable that starts with a digit", envNameErrors, "1a", "a valid environment variable name must"],
    ["an environment variable whose name is one dot", envNameErrors, ".", "must not be '.'"],
    ["an environment variable whose name is two dots", envNameErrors, "..", "must not be '..'"],
    ["a ConfigMap key that starts with two dots", configKeyErrors, "..a", "must not start with '..'"],
    ["a port name that starts with upper case", portNameErrors, "Ab", "must contain only alpha-numeric characters"],
    ["a port name that ends with upper case", portNameErrors, "aB", "must contain only alpha-numeric characters"],
    ["a port name that starts with a dash", portNameErrors, "-a", "must not begin or end with a hyphen"],
    ["a port name without a letter", portNameErrors, "123", "must contain at least one letter (a-z)"],
    ["a port name with two dashes in a row", portNameErrors, "a--b", "must not contain consecutive hyphens"],
    ["a port name that ends with a dash", portNameErrors, "a-", "must not begin or end with a hyphen"],
    ["a percentage without the percent sign", percentErrors, "10", "a valid percent string must be a numeric string"],
  ];
  it.each(rows)("%s is refused with its reason", (_sentence, errorsOf, text, reason) => {
    expect(errorsOf(text)[0]).toContain(reason);
  });
});

it("rangeErrors accepts both bounds of a range and refuses values outside of it", () => {
  expect(rangeErrors(1, 1, 3)).toEqual([]);
  expect(rangeErrors(3, 1, 3)).toEqual([]);
  expect(rangeErrors(0, 1, 3)).toEqual(["must be between 1 and 3, inclusive"]);
  expect(rangeErrors(4, 1, 3)).toEqual(["must be between 1 and 3, inclusive"]);
});
