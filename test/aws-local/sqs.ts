/** SQS on this machine: ElasticMQ, a server that people run; moto, which imitates SQS, where that can't be had. */
import { elasticMq } from "./elasticmq.ts";
import { moto } from "./moto.ts";
import { type Program, type Sqs, startServer } from "./server.ts";

/** Says which of the two it is. @throws Error with one sentence when there is neither */
export async function startSqs(): Promise<Sqs> {
  return startServer(await program());
}

async function program(): Promise<Program> {
  try {
    const wanted = await elasticMq();
    process.stdout.write(`SQS: ${wanted.name}\n`);
    return wanted;
  } catch (error) {
    const { name, ...rest } = await moto();
    process.stdout.write(
      `SQS: ${name} in place of ElasticMQ, which is not to be had here: ${(error as Error).message}\n`,
    );
    return { name, ...rest };
  }
}
