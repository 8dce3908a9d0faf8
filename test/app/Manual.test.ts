/** `--help`: one screen for each command. */
import { Console, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { run } from "../../src/app/commands/Cli.ts"

/** What the command line prints to a reader without a terminal. */
const printed = async (...words: ReadonlyArray<string>): Promise<string> => {
  const texts: Array<unknown> = []
  await Effect.runPromise(
    Effect.consoleWith((console) =>
      run(["node", "tollgate", ...words]).pipe(
        Console.withConsole({ ...console, log: (text) => Effect.sync(() => void texts.push(text)) })
      )
    )
  )
  return texts.join("\n")
}

describe("--help", () => {
  it("shows a command by its full name, what it needs, and a line for each option", async () => {
    const lines = (await printed("operator", "keys", "create", "--help")).split("\n")
    expect(lines.slice(0, 4)).toEqual([
      "tollgate operator keys create --scopes text [options]",
      "",
      "Create a management key and print it once",
      ""
    ])
    expect(lines.slice(4).map((line) => line.trim().split(/ {2,}/)[0])).toEqual([
      "--name text",
      "--scopes text",
      "--expires text",
      "--json"
    ])
  })

  it("shows an argument of a command", async () => {
    const [usage, , , , argument] = (await printed("people", "import", "--help")).split("\n")
    expect(usage).toBe("tollgate people import <FILE.csv> [options]")
    expect(argument).toMatch(/^ {2}<FILE\.csv> +a CSV file/)
  })

  it("lists subcommands by what is typed, in their order", async () => {
    const text = await printed("people", "--help")
    expect([...text.matchAll(/^ {2}(tollgate people [a-z]+) {2,}\S/gm)].map(([, name]) => name)).toEqual([
      "tollgate people create",
      "tollgate people list",
      "tollgate people suspend",
      "tollgate people import"
    ])
  })

  it("begins the list of all commands with the first one to use, and names the environment once", async () => {
    const text = await printed()
    expect(text).toBe(await printed("--help"))
    expect(text.indexOf("tollgate quickstart")).toBeLessThan(text.indexOf("tollgate check"))
    expect(text.match(/DATA_DIR /g)).toHaveLength(1)
    expect(await printed("serve", "--help")).not.toContain("DATA_DIR")
  })

  it("has a meaning for each option of each command", async () => {
    const named = [...(await printed()).matchAll(/^ {2}tollgate ([a-z-]+)/gm)].map(([, name]) => name!)
    expect(named.length).toBeGreaterThan(20)
    for (const name of named) expect(await printed(name, "--help")).not.toMatch(/^ {2}--[a-z-]+( [a-z]+)?$/m)
  })
})
