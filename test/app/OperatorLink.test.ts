/** `tollgate operator` prints a link to the deployment that runs, without being told its port. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { commandHere } from "../support/CommandLine.ts"
import { freePort, freshFolder, start } from "../support/Service.ts"

const linkFor = async (folder: string, ...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stderr, stdout } = await commandHere(["operator", "--json", ...args], { DATA_DIR: folder })
  expect([code, stderr]).toEqual([0, ""])
  return new URL((JSON.parse(stdout) as { link: string }).link).origin
}

describe("the link of tollgate operator", () => {
  it("has the port of the sandbox that runs, and that of the environment after its end", async () => {
    const service = await start()
    try {
      expect(await linkFor(service.folder)).toBe(service.url)
      await service.end()
      expect(await linkFor(service.folder)).toBe("http://127.0.0.1:8787")
    } finally {
      await service.discard()
    }
  })

  it("has the public_url of the deployment that runs, or of the configuration file that is named", async () => {
    const [folder, port] = [freshFolder(), await freePort()]
    const [file, other] = [join(folder, "config.json"), join(folder, "other.json")]
    writeFileSync(file, JSON.stringify({ public_url: "https://ai.example.com/", metrics: { token_env: "PATH" } }))
    writeFileSync(other, JSON.stringify({ public_url: "https://other.example.com", metrics: { token_env: "PATH" } }))
    const service = await start({ folder, port, args: ["--config", file] })
    try {
      expect(await linkFor(folder)).toBe("https://ai.example.com")
      expect(await linkFor(folder, "--config", other)).toBe("https://other.example.com")
    } finally {
      await service.discard()
    }
  })

  it("has the port of a deployment without a public_url", async () => {
    const folder = freshFolder()
    const file = join(folder, "config.json")
    writeFileSync(file, JSON.stringify({ metrics: { token_env: "PATH" } }))
    const service = await start({ folder, args: ["--config", file] })
    try {
      expect(await linkFor(folder, "--config", file)).toBe(service.url)
    } finally {
      await service.discard()
    }
  })
})
