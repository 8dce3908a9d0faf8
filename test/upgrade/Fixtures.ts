/** Databases of earlier versions, as `scripts/upgrade/make.ts` kept them, and the service on one of them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliDecompressSync } from "node:zlib"
import { expect } from "vitest"
import { shown } from "../../scripts/upgrade/Life.ts"
import type { Figures } from "../../scripts/upgrade/Life.ts"
import { freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

/** What seals the keys of every fixture. */
export const secret = "5e".repeat(32)

export interface Fixture {
  readonly name: string
  readonly figures: Figures
  /** The file of SQLite, or the statements of PostgreSQL. */
  readonly content: () => Buffer
}

const folder = join(import.meta.dirname, "fixtures")
const unpacked = (name: string): Buffer => brotliDecompressSync(readFileSync(join(folder, name)))

/** The sentence of an explanation is each version's own; figures and fields stay. */
const figuresIn = (text: string): Figures =>
  JSON.parse(text, (key, value: unknown) =>
    key === "summary" && typeof value === "string" ? expect.any(String) : value
  ) as Figures

/** All of an engine, oldest first. */
export const fixturesOf = (engine: "sqlite" | "postgres"): ReadonlyArray<Fixture> =>
  readdirSync(folder)
    .filter((name) => name.startsWith(engine) && !name.endsWith(".json.br"))
    .toSorted()
    .map((file) => {
      const name = file.replace(/\.br$/, "")
      return {
        name: name.replace(/\.\w+$/, ""),
        figures: figuresIn(unpacked(`${name}.json.br`).toString()),
        content: () => unpacked(file)
      }
    })

/** A data folder whose sandbox has the time of the fixture's last moment. */
export const folderOf = ({ figures }: Fixture): string => {
  const folder = freshFolder()
  writeFileSync(join(folder, "sandbox-clock"), String(Date.parse(figures.at) - Date.now() + 1_000))
  return folder
}

/** The same with the file of a fixture of SQLite. */
export const folderWith = (fixture: Fixture): string => {
  const folder = folderOf(fixture)
  writeFileSync(join(folder, "tollgate.db"), fixture.content())
  return folder
}

export const serve = (folder: string, env: Record<string, string> = {}): Promise<Service> =>
  start({ folder, env: { TOLLGATE_SECRET: secret, ...env } })

/**
 * The person with a token that is good now. Those of versions before 0014 name no sign-in, and are refreshed as any that has ended; what
 * they are refreshed by is of then.
 */
const withToken = async (service: Service, person: Figures["people"][string]) => {
  if ((await service.call("/v1/me", { token: person.token })).status !== 401) return person
  const { client_id } = await service.sandbox()
  const json = { client_id, grant_type: "refresh_token", refresh_token: person.refresh_token }
  const { body, status } = await service.call("/v1/auth/token", { json })
  if (status !== 200) throw new Error(`${person.email} could not refresh: ${status} ${JSON.stringify(body)}`)
  const { access_token: token } = body.result?.token_response ?? body.result ?? body
  return { ...person, token }
}

/** What everybody is shown by a version now, of what was shown to them then; and everybody, with tokens that are good now. */
export const shownOf = async (service: Service, { figures }: Fixture) => {
  const entries = Object.entries(figures.people)
  const people = Object.fromEntries(
    await Promise.all(entries.map(async ([name, person]) => [name, await withToken(service, person)] as const))
  )
  const now = await shown(service, people, figures.team_id)
  const answers = figures.answers.map(
    ({ path, who }) => now.find((one) => one.who === who && one.path === path) ?? { who, path, body: undefined }
  )
  return { answers, people }
}
