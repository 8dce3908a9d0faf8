/** What the page takes from the address that the link of a letter leads to. */
import { beforeEach, expect, it, vi } from "vitest"
import { forget, opened, takeIn } from "../../src/console/web/views/invitation/token.ts"

beforeEach(() => {
  const items = new Map<string, string>()
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name)
  })
  return () => vi.unstubAllGlobals()
})

it("takes in the token of a link", () => {
  expect(takeIn("#team=a%2Fb")).toBe(true)
  expect(opened()).toEqual({ kind: "team", token: "a/b" })
  forget()
  expect(opened()).toBeUndefined()
})

it.each(["", "#", "#team=", "#other=a", "#team=%", "#transfer=a%E0%A4"])("takes in nothing from %o", (hash) => {
  expect(takeIn(hash)).toBe(false)
  expect(opened()).toBeUndefined()
})
