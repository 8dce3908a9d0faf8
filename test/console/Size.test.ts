/** The console's page as it is built: small enough to be there at once, and free of what its policy forbids. */
import { readdirSync, readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildConsole, firstLoadMax } from "../../scripts/console.ts"
import type { Built } from "../../scripts/console.ts"

let folder: string
let built: Built

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "console-"))
  built = await buildConsole(folder)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe("the console's page", () => {
  it("loads its first view with less than 200 kB, compressed, and draws no plot before it is wanted", () => {
    expect(built.firstLoad).toBeLessThan(firstLoadMax)
    const first = readFileSync(join(folder, "index.html"), "utf8")
    const plots = readdirSync(join(folder, "assets")).filter((name) => /^PlotCanvas-.*\.js$/.test(name))
    expect(plots).toHaveLength(1)
    expect(first).not.toContain("PlotCanvas")
  })

  it("names each asset by its content, and has it compressed twice", () => {
    const names = readdirSync(join(folder, "assets"))
    for (const name of names.filter((one) => /\.(?:js|css)$/.test(one))) {
      expect(name).toMatch(/-[A-Z0-9]{8}\.(?:js|css)$/)
      expect(names).toContain(`${name}.br`)
      expect(names).toContain(`${name}.gz`)
    }
  })

  it("has nothing inline, and nothing of another origin", () => {
    const html = readFileSync(join(folder, "index.html"), "utf8")
    expect(html).toContain('<head>\n    <base href="/console/">')
    expect(html).not.toMatch(/<style|style=|<script(?![^>]* src=)| on\w+=/)
    expect(
      [...html.matchAll(/(?:src|href)="([^"]+)"/g)]
        .map(([, url]) => url!)
        .filter((url) => /^(?:https?:)?\/\//.test(url))
    ).toEqual([])
  })
})
