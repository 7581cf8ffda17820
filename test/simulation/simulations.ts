/**
 * The simulations, and the bugs that are planted into the code of each. Every tool that runs or measures them reads
 * this table.
 */
export interface Simulation {
  /** the script beside this file; it runs seeds `--from N --seeds N`, and `--first` ends it at the first finding */
  readonly script: string;
  /** the folder beside this file, with a patch for each bug and found.json: bug's name → the seed that finds it */
  readonly bugs: string;
  /** the key of the simulation's figures in the report */
  readonly report: string;
  readonly leastBugs: number;
  /** the most seeds within which a bug must be found */
  readonly mostSeeds: number;
}

export const SIMULATIONS: Readonly<Record<string, Simulation>> = {
  rollout: { script: "main.ts", bugs: "bugs", report: "bugs", leastBugs: 100, mostSeeds: 10_000 },
  views: { script: "views/main.ts", bugs: "views/bugs", report: "viewBugs", leastBugs: 26, mostSeeds: 1_500 },
  queue: { script: "queue/main.ts", bugs: "queue/bugs", report: "queueBugs", leastBugs: 16, mostSeeds: 1_500 },
  client: { script: "client/main.ts", bugs: "client/bugs", report: "clientBugs", leastBugs: 10, mostSeeds: 640 },
  ordered: {
    script: "ordered/main.ts",
    bugs: "ordered/bugs",
    report: "orderedBugs",
    leastBugs: 21,
    mostSeeds: 10_000,
  },
};
