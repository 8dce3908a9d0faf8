/** Lists people and tenants, with a search and the forms that create them. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import type { UseQueryResult } from "@tanstack/react-query"
import { useState } from "react"
import type { ReactNode } from "react"
import { resultOf } from "../app/Client.ts"
import { TextField } from "../parts/Fields.tsx"
import { Page } from "../parts/Page.tsx"
import { Answer, Empty } from "../parts/States.tsx"
import { Pages } from "../parts/Table.tsx"
import { operatorTexts } from "../texts/operator.ts"
import { provisionTexts as texts } from "../texts/provision.ts"
import { useCursors, useSearch } from "./Asking.ts"
import { PersonTable, TenantTable } from "./Lines.tsx"
import { operatorApi } from "./OperatorSession.ts"
import { InvitePerson, MakePerson, MakeTenant } from "./Provision.tsx"

interface ListingProps<Row> {
  readonly words: { readonly title: string; readonly lead: string; readonly search: string }
  readonly none: string
  readonly actions: ReactNode
  readonly found: (found: NonNullable<ReturnType<typeof useSearch>["data"]>) => ReadonlyArray<Row>
  readonly newest: UseQueryResult<{ readonly records: ReadonlyArray<Row>; readonly next: string | null }>
  readonly cursors: ReturnType<typeof useCursors>
  readonly table: (rows: ReadonlyArray<Row>) => ReactNode
}

const Listing = <Row,>({ actions, cursors, found, newest, none, table, words }: ListingProps<Row>) => {
  const [text, setText] = useState("")
  const question = text.trim()
  const search = useSearch(question)
  return (
    <Page title={words.title} lead={words.lead} actions={actions}>
      <TextField name="q" type="search" label={words.search} value={text} maxLength={200} onChange={setText} />
      {question === "" ? (
        <Answer of={newest} lines={8}>
          {({ next, records }) =>
            records.length === 0 ? (
              <Empty title={none} />
            ) : (
              <>
                {table(records)}
                {cursors.hasPages(next) ? <Pages {...cursors.pages(next)} /> : null}
              </>
            )
          }
        </Answer>
      ) : (
        <Answer of={search} lines={6}>
          {(of) => (found(of).length === 0 ? <Empty title={operatorTexts.find.nothing} /> : table(found(of)))}
        </Answer>
      )}
    </Page>
  )
}

const pageOf = (cursor: string | undefined) => ({
  params: { query: { limit: "25", ...(cursor !== undefined && { before: cursor }) } }
})

export const People = () => {
  const cursors = useCursors("people")
  const newest = useQuery({
    queryKey: ["operator", "people", cursors.cursor],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/people", pageOf(cursors.cursor))),
    placeholderData: keepPreviousData
  })
  return (
    <Listing
      words={texts.people}
      none={texts.people.none}
      actions={
        <>
          <InvitePerson />
          <MakePerson />
        </>
      }
      found={({ people }) => people}
      newest={newest}
      cursors={cursors}
      table={(rows) => <PersonTable rows={rows} />}
    />
  )
}

export const Tenants = () => {
  const cursors = useCursors("tenants")
  const newest = useQuery({
    queryKey: ["operator", "tenants", cursors.cursor],
    queryFn: () => resultOf(operatorApi.GET("/v1/operator/tenants", pageOf(cursors.cursor))),
    placeholderData: keepPreviousData
  })
  return (
    <Listing
      words={texts.tenants}
      none={operatorTexts.find.noTenants}
      actions={<MakeTenant />}
      found={({ tenants }) => tenants}
      newest={newest}
      cursors={cursors}
      table={(rows) => <TenantTable rows={rows} />}
    />
  )
}
