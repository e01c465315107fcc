<?php
class Whole {
    public function works() {}
}

class Half {
    public function lost(int $a {
        if ($a {

function after() { return 1; }
