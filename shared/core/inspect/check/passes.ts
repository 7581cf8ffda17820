/** Tells whether rollout passes run, clocks agree, and reservations end. */

import type { ConfigMap } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { ledgerName, parseLedger } from "../../ledger.ts";
import { waitingFor } from "../../rollout/notifications.ts";
import { type Facts, seenOf } from "./facts.ts";
import { type Finding, finding, where } from "./finding.ts";
import { lastWrite } from "./written.ts";

/** The sum of a one-minute schedule and a pass of up to one minute, with a margin. */
const LATE_SECONDS = 180;
/** A frozen pass resumes, or its successor fences its pods, long before this time. */
const HELD_SECONDS = 600;
/** Leases, certificates and tokens tolerate this difference. */
const SKEW_SECONDS = 10;
/** A failed receiver is tried again after a minute. */
const WAITS_SECONDS = 300;
const LEDGER = "sidecarset-ledger-";
const START =
  "see that the schedule of the rollout function is on, or that serve runs with --tick; until then sidecarset tick makes one by hand";

export function checkPasses(facts: Facts): readonly Finding[] {
  const late = checkTick(facts);
  const sets = seenOf(facts.sidecarSets);
  return [
    ...late,
    ...checkClock(facts),
    ...(seenOf(facts.configMaps) ?? []).flatMap((one) => checkLedger(one, sets, facts.now)),
    // Without passes no generation is seen at all, which another finding says.
    ...(late.length === 0 && sets ? sets.flatMap(checkGeneration) : []),
    ...(late.length === 0 && sets ? sets.flatMap((one) => checkNotifications(one, facts.now)) : []),
  ];
}

function checkTick({ lastPass, sidecarSets, now, kruiseNamespace }: Facts): readonly Finding[] {
  if ("why" in lastPass) return [];
  const about = `Lease ${kruiseNamespace}/sidecarset-rollout`;
  const sets = seenOf(sidecarSets) ?? [];
  if (lastPass.value === undefined) return sets.length === 0 ? [] : [neverRan(about, sets.filter(isUnseen).length)];
  const age = secondsBetween(lastPass.value, now) ?? 0;
  return where(
    age > LATE_SECONDS,
    finding("TickNotRunning", about, `no pass has run since ${lastPass.value} (${agoText(age)})`, START),
  );
}

/** The finding without a Lease. If every change was recorded, OpenKruise may have done that. */
function neverRan(about: string, unseen: number): Finding {
  if (unseen > 0)
    return finding(
      "TickNeverRan",
      about,
      `there is none, and no pass has recorded ${counted(unseen, "SidecarSet")}: none runs`,
      START,
    );
  return finding("TickUnknown", about, "there is none: no pass has run from here yet", START);
}

function isUnseen({ metadata, status }: SidecarSet): boolean {
  return (status?.observedGeneration ?? 0) < (metadata?.generation ?? 0);
}

function agoText(seconds: number): string {
  if (seconds < 7_200) return `${counted(Math.floor(seconds / 60), "minute")} ago`;
  return seconds < 172_800
    ? `${counted(Math.floor(seconds / 3_600), "hour")} ago`
    : `${counted(Math.floor(seconds / 86_400), "day")} ago`;
}

function checkClock({ skewSeconds }: Facts): readonly Finding[] {
  const skew = seenOf(skewSeconds) ?? 0;
  const [amount, direction] = [Math.abs(skew), skew > 0 ? "behind" : "ahead of"];
  return where(
    amount > SKEW_SECONDS,
    finding(
      "ClockSkew",
      "clock",
      `the clock here is ${amount} seconds ${direction} the API server's: ages in this list are wrong by as much, and so are Leases and certificates where functions run with this clock`,
      "have both keep time by NTP",
    ),
  );
}

function checkLedger(configMap: ConfigMap, sets: readonly SidecarSet[] | undefined, now: string): readonly Finding[] {
  const { metadata, data } = configMap;
  const name = metadata?.name ?? "";
  if (!name.startsWith(LEDGER)) return [];
  const about = `ConfigMap ${metadata?.namespace}/${name}`;
  const ledger = parseLedger(data);
  if (ledger === undefined)
    return [
      finding(
        "LedgerUnreadable",
        about,
        "it is no ledger of reservations: its SidecarSet is not rolled out",
        "delete it while no pass runs",
      ),
    ];
  const count = ledger.reservations.length;
  const written = lastWrite(configMap);
  const age = written === undefined ? 0 : (secondsBetween(written, now) ?? 0);
  const isLeft = sets !== undefined && !sets.some((one) => ledgerName(one.metadata?.name ?? "") === name);
  const first = ledger.reservations[0];
  return [
    ...where(
      count > 0 && age > HELD_SECONDS,
      finding(
        "ReservationsHeld",
        about,
        `${counted(count, "pod is", "pods are")} reserved for an update since ${written}, such as ${first?.namespace}/${first?.name}: ${count === 1 ? "it uses" : "they use"} the budget`,
        "the next pass frees them; see why none succeeds in the function's log",
      ),
    ),
    ...where(
      isLeft,
      finding(
        "LedgerLeft",
        about,
        "its SidecarSet is gone",
        count > 0 ? "leave it until a late pass can have ended, an hour or so, then delete it" : "delete it",
      ),
    ),
  ];
}

function checkNotifications({ metadata, status }: SidecarSet, now: string): readonly Finding[] {
  const notifications = waitingFor(status);
  const [oldest] = notifications;
  const age = oldest === undefined ? 0 : (secondsBetween(oldest.at, now) ?? 0);
  const count = counted(notifications.length, "notification waits", "notifications wait");
  return where(
    age > WAITS_SECONDS,
    finding(
      "NotificationsWait",
      `SidecarSet ${metadata?.name}`,
      `${count} to be sent, the oldest (${oldest?.event}) since ${oldest?.at}`,
      "the log of the passes says why; see that NOTIFICATIONS is set there and that the receiver answers",
    ),
  );
}

function checkGeneration(one: SidecarSet): readonly Finding[] {
  const { metadata, status } = one;
  return where(
    isUnseen(one),
    finding(
      "ChangeNotSeen",
      `SidecarSet ${metadata?.name}`,
      `no pass has recorded its latest change (generation ${metadata?.generation}, recorded ${status?.observedGeneration ?? 0})`,
      "look again in a minute; where that does not change, the function's log says why",
    ),
  );
}
