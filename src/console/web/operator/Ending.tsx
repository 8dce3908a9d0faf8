/** Ends an item in a list after the user confirms. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { ReactNode } from "react"
import { Confirm } from "../parts/Dialog.tsx"

interface EndingOf<Row> {
  readonly title: (row: Row) => string
  readonly text: string
  readonly action: string
  readonly end: (row: Row) => Promise<unknown>
}

/** Returns a function that opens the confirmation for a row, and the dialog itself. */
export const useEnding = <Row,>({
  action,
  end,
  text,
  title
}: EndingOf<Row>): readonly [(row: Row) => void, ReactNode] => {
  const queries = useQueryClient()
  const [row, choose] = useState<Row>()
  const ending = useMutation({
    mutationFn: end,
    onSuccess: () => choose(undefined),
    onSettled: () => queries.invalidateQueries({ queryKey: ["operator"] })
  })
  const openConfirmation = (chosen: Row) => {
    ending.reset()
    choose(() => chosen)
  }
  return [
    openConfirmation,
    row === undefined ? null : (
      <Confirm
        key="ending"
        title={title(row)}
        action={action}
        isOpen
        isPending={ending.isPending}
        error={ending.error}
        onConfirm={() => ending.mutate(row)}
        onClose={() => choose(undefined)}
      >
        {text}
      </Confirm>
    )
  ]
}
