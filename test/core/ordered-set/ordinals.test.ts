import { describe, expect, test } from "vitest";
import { setErrors } from "../../../shared/core/statefulset/admission/validate-set.ts";
import { ordinalRange } from "../../../shared/core/statefulset/pods/ordinals.ts";
import { setOf } from "./fixture.ts";

const MOST = "9223372036854775807";
const TOO_MUCH = "9223372036854775808";

describe("the reserved ordinals:", () => {
  test.each([
    ["1-+2", [1, 2]],
    ["01-002", [1, 2]],
    [`1-${TOO_MUCH}`, []],
    [`${TOO_MUCH}-1`, []],
    ["2-1", []],
    ["1-2-3", []],
    ["1 - 2", []],
    ["1-", []],
    ["-1", []],
  ])("ordinalRange reads the reserved ordinals %s", (entry, ordinals) => {
    expect([...ordinalRange({ replicas: 1, reserveOrdinals: [entry] }, false).reserved]).toEqual(ordinals);
  });

  test.each([
    [`1-${TOO_MUCH}`, `strconv.Atoi: parsing "${TOO_MUCH}": value out of range`],
    [`${TOO_MUCH}-x`, `strconv.Atoi: parsing "${TOO_MUCH}": value out of range`],
    [`${MOST}-1`, `invalid range ${MOST}-1`],
    ["1-", 'strconv.Atoi: parsing "": invalid syntax'],
  ])("the reserved ordinals %s are refused: %s", (entry, cause) => {
    const details = setErrors(setOf({ reserveOrdinals: [entry] })).map(({ detail }) => detail);
    expect(details).toContain(`0 th reserve ordinal is invalid: ${entry}, err = ${cause}`);
  });
});

test("a percentage beyond 64 bits is refused with Go's message", () => {
  const spec = { podManagementPolicy: "Parallel", scaleStrategy: { maxUnavailable: `${TOO_MUCH}%` } } as const;
  const details = setErrors(setOf(spec)).map(({ detail }) => detail);
  const cause = `invalid value "${TOO_MUCH}%": strconv.Atoi: parsing "${TOO_MUCH}": value out of range`;
  expect(details).toContain(`getValueFromIntOrPercent error: invalid value for IntOrString: ${cause}`);
});
