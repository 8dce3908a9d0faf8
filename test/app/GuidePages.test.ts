/** The guides as pages: every link between them leads to a heading that exists. */
import { describe, expect, it } from "vitest"
import { guidePage } from "../../src/app/guides/GuidePages.ts"
import { guides } from "../../src/app/guides/Guides.ts"

describe("the pages of the guides", () => {
  it("link to pages and headings that exist", () => {
    const links = Object.keys(guides).flatMap((name) =>
      [...guidePage(name, "/docs")!.matchAll(/href="\/docs\/guides\/([a-z-]+)(?:#([a-z0-9-]+))?"/g)].map(
        ([, page, anchor]) => [page!, anchor] as const
      )
    )
    expect(links.some(([, anchor]) => anchor !== undefined)).toBe(true)
    for (const [page, anchor] of links) {
      const html = guidePage(page, "/docs")
      expect(html, page).toBeDefined()
      if (anchor !== undefined) expect(html, `${page}#${anchor}`).toContain(` id="${anchor}"`)
    }
  })
})
