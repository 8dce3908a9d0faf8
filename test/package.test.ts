/** What stands in more than one place: the version, the README's examples, and the contract as it was last agreed to. */
import { OpenApi } from "@effect/platform"
import { Either } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Api } from "../src/app/Api.ts"
import { decodeFile } from "../src/app/Config.ts"
import { decisions } from "../scripts/decisions.ts"
import { byTag } from "../scripts/openapi.ts"
import { version } from "../src/kernel/Version.ts"

const root = join(import.meta.dirname, "..")
const guide = (name: string): string => readFileSync(join(root, "src", "app", "guides", `${name}.md`), "utf8")

describe("the version", () => {
  it("is the package's", () => {
    const packed = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }
    expect(version).toBe(packed.version)
  })
})

/** Every package that a file imports, also dynamically or by its path. */
const importedIn = (folders: ReadonlyArray<string>): ReadonlySet<string> => {
  const files = folders.flatMap((folder) =>
    (readdirSync(join(root, folder), { recursive: true }) as ReadonlyArray<string>)
      .filter((name) => /\.(m?[jt]sx?|cjs|css)$/.test(name) && !name.includes("node_modules"))
      .map((name) => join(root, folder, name))
  )
  const name = String.raw`((?:@[\w-]+/)?[\w.-]+)`
  const places = [
    new RegExp(String.raw`\b(?:from|import|resolve|require|url)\b ?\(?\s*["']${name}`, "g"),
    new RegExp(String.raw`node_modules["', /]+${name}`, "g")
  ]
  const texts = [...files, join(root, "vitest.config.ts")].map((file) => readFileSync(file, "utf8"))
  return new Set(
    texts.flatMap((text) => places.flatMap((place) => [...text.matchAll(place)].map(([, found]) => found!)))
  )
}

describe("the dependencies", () => {
  interface Package {
    readonly bin?: string | Record<string, string>
    readonly dependencies: Record<string, string>
    readonly devDependencies: Record<string, string>
    readonly peerDependencies?: Record<string, string>
    readonly scripts: Record<string, string>
  }
  const read = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Package
  const { dependencies, devDependencies, scripts } = read(root)
  const peers = new Set(
    Object.keys({ ...dependencies, ...devDependencies }).flatMap((name) =>
      Object.keys(read(join(root, "node_modules", name)).peerDependencies ?? {})
    )
  )

  it("are imported by the source, or are packages that another dependency requires beside itself", () => {
    const imported = importedIn(["src"])
    expect(Object.keys(dependencies).filter((name) => !imported.has(name) && !peers.has(name))).toEqual([])
  })

  it("for development are imported, or run by a script, or are types", () => {
    const imported = importedIn(["src", "test", "scripts"])
    const commands = Object.values(scripts).join(" ")
    const isRun = (name: string) => {
      const { bin } = read(join(root, "node_modules", name))
      const names = typeof bin === "string" ? [name] : Object.keys(bin ?? {})
      return names.some((bin) => new RegExp(`\\b${bin}\\b`).test(commands))
    }
    const unused = Object.keys(devDependencies).filter(
      (name) => !imported.has(name) && !isRun(name) && !name.startsWith("@types/")
    )
    expect(unused).toEqual([])
  })
})

describe("the example configurations", () => {
  const [first] = [...guide("configure").matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, text]) => JSON.parse(text!) as unknown
  )
  const whole: unknown = JSON.parse(readFileSync(join(root, "scripts", "deploy", "tollgate.example.json"), "utf8"))

  it("are valid: the guide's, and the one with every part", () => {
    for (const document of [first, whole]) {
      expect(Either.getOrElse(decodeFile(document, "the example"), ({ message }) => message)).toMatchObject({})
      expect(Either.isRight(decodeFile(document, "the example"))).toBe(true)
    }
  })

  it("send a limit that OpenAI's newer models take", () => {
    const { models } = Either.getOrThrow(decodeFile(first, "the guide"))
    const limits = models.flatMap(({ routes }) => routes.map(({ limit_field }) => limit_field))
    expect(new Set(limits)).toEqual(new Set(["max_completion_tokens"]))
  })

  it("name only commands that there are", () => {
    const folder = join(root, "src", "app", "commands")
    const files = [
      join(root, "src", "app", "commands", "Cli.ts"),
      ...readdirSync(folder).map((file) => join(folder, file))
    ]
    const cli = files.map((file) => readFileSync(file, "utf8")).join("\n")
    for (const [, line] of guide("operate").matchAll(/^\| `([a-z][^|]*)` \|/gm)) {
      const command = /^[a-z-]+/.exec(line!)![0]
      expect(cli.includes(`Command.make("${command}"`) || cli.includes(`Command.make(\n  "${command}"`)).toBe(true)
    }
  })
})

describe("the contract", () => {
  it("is the one that was agreed to; after a change that is meant, run vitest -u", async () => {
    const files = byTag(OpenApi.fromApi(Api))
    const folder = join(root, "test", "conformance", "openapi")
    for (const [name, text] of files) await expect(text).toMatchFileSnapshot(`conformance/openapi/${name}.json`)
    expect(readdirSync(folder).toSorted()).toEqual([...files.keys()].map((name) => `${name}.json`).toSorted())
  })

  it("has every decision in the index; after a change that is meant, run vitest -u", async () => {
    await expect(decisions()).toMatchFileSnapshot("../src/DECISIONS.md")
  })
})
