/** Decides whether our accounts may do what they have to, and no more. */
import { type Facts, type Right, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";
import { usedFeatures } from "./used-features.ts";

const APPLY = "kubectl apply -f infra/rbac/access.yaml";

export function checkRights(facts: Facts): readonly Finding[] {
  const rights = seenOf(facts.rights) ?? [];
  const accounts = [...new Set(rights.map(({ account }) => account))];
  return [...accounts.flatMap((account) => checkAccount(account, rights)), ...checkOptional(facts, rights)];
}

function checkAccount(account: string, rights: readonly Right[]): readonly Finding[] {
  const own = rights.filter((one) => one.account === account);
  const missing = own.filter(({ role, isAllowed }) => role === "base" && !isAllowed).map(({ what }) => what);
  const excess = own.filter(({ role, isAllowed }) => role === "none" && isAllowed).map(({ what }) => what);
  return [
    ...where(missing.length > 0, finding("RightMissing", account, `it may not ${someOf(missing)}`, APPLY)),
    ...where(
      excess.length > 0,
      finding(
        "RightTooWide",
        account,
        `it may ${someOf(excess)}, which nothing here needs`,
        "take the other bindings of this account away: infra/rbac has what it needs",
      ),
    ),
  ];
}

/** Features that are used, as far as the cluster tells, while their role is not there. */
function checkOptional(facts: Facts, rights: readonly Right[]): readonly Finding[] {
  return usedFeatures(facts).flatMap(({ feature, sign }) => {
    const lacking = rights.filter(({ role, isAllowed }) => role === feature && !isAllowed).map(({ what }) => what);
    return where(
      lacking.length > 0,
      finding(
        "OptionalRoleMissing",
        `role ${feature}`,
        `${sign}, but what that takes is not permitted: ${someOf(lacking)}`,
        `kubectl apply -f infra/rbac/optional/${feature}.yaml`,
      ),
    );
  });
}
