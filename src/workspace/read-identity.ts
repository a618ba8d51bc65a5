import { inRepository } from "./in-repository.ts";

/** Name and address of a committer. */
export interface Identity {
  readonly name: string;
  readonly email: string;
}

/** Who the person is to git in their repository, or null where they have not said. */
export async function readIdentity(repository: string): Promise<Identity | null> {
  const [name, email] = await Promise.all(
    ["user.name", "user.email"].map(async (key) => {
      const output = await inRepository(repository, ["config", "--get", key]);
      return output.exitCode === 0 ? output.stdout.toString("utf8").trim() : "";
    }),
  );
  return name && email ? { name, email } : null;
}
